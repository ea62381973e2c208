package cluster

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// A node comes back as another one is lost. The shard commits nothing until the returned one has all
// entries, so no new entry makes Raft send them.
func TestReturn_AnotherNodeIsLost(t *testing.T) {
	t.Parallel()
	for _, lacks := range []int{1, maxAppendEntries, maxAppendEntries + 5, 3 * maxAppendEntries} {
		t.Run(fmt.Sprintf("lacks %d entries", lacks), func(t *testing.T) {
			t.Parallel()
			w := rarelyCommitted(t)
			a := w.owner(t, 1, "a")
			w.isolate(true, "b", "a", "c")
			for i := range lacks {
				a.mustPropose(t, 1, fmt.Sprintf("row %d", i))
			}
			w.isolate(true, "c", "a", "b")
			w.isolate(false, "b", "a")
			batch := write(t, a.store, 1, "last")
			testkit.Eventually(t, "a write is committed", func() bool {
				epoch, owns := a.Owner(1)
				if !owns { // it had no quorum for a moment
					return false
				}
				done := make(chan error, 1)
				a.Propose(1, epoch, batch, func(err error) { done <- err })
				select {
				case err := <-done:
					return err == nil
				case <-time.After(deadline):
					t.Fatal("the shard takes no writes")
					return false
				}
			})
		})
	}
}
