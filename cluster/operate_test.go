package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// In a minority no owner of the directory is known, and nobody was asked for the change.
func TestOperate_WithoutADirectoryChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &Node{peering: &peering{}, id: identity{Node: "self"}}
		for name, operate := range map[string]func(context.Context, string) error{"drain": n.Drain, "undrain": n.Undrain, "remove": n.Remove} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := operate(ctx, "other")
			cancel()
			var told *Error
			if !errors.As(err, &told) || !told.NotApplied() || !errors.Is(err, errNoDirectory) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
