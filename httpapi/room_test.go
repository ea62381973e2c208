package httpapi

import (
	"testing"

	"switchyard/actors/tracker"
)

// Deletions go on in a workspace at its limit and on a full disk. Each must be declared
// to free room for that.
func TestRoutes_DeletionsFreeRoom(t *testing.T) {
	t.Parallel()
	for _, rt := range Routes() {
		if rt.Method == "DELETE" && rt.Op.Needs.Level != tracker.Operator && rt.Op.Space != tracker.FreesSpace && rt.Op.Space != tracker.EndsWorkspace {
			t.Errorf("%s %s does not say that it frees room", rt.Method, rt.Path)
		}
	}
}
