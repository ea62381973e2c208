package cluster

import (
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// A node that is about to stop does not keep what it is given after it has handed its shards over.
// Other nodes send it no requests, so nobody would be served.
func TestLead_AboutToStop(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	names := []string{"a", "b", "c"}
	owner := w.owner(t, 1, names...)
	stopping := w.nodes[namesBut(names, owner.Name())[0]]
	stopping.leaving.Store(true)
	testkit.Eventually(t, "the shard is given to it", func() bool {
		owner = w.owner(t, 1, namesBut(names, stopping.Name())...)
		return owner.group(1).handOver(t.Context(), stopping.Name(), true) == nil
	})
	w.owner(t, 1, namesBut(names, stopping.Name())...)
	for _, what := range stopping.watcher.all() {
		if strings.HasPrefix(what, "gained 1/") {
			t.Error("it served the shard")
		}
	}
}
