package actors

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// The replicator is told of damage that a command or a query meets, and of no other fault.
func TestEngine_TellsOfDamage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	damaged := &b.local.damaged[storage.ShardOf(ws, b.local.Shards())]
	for _, row := range []struct {
		fault error
		told  int32
	}{{errors.New("another fault"), 0}, {tracker.NotFound("issue"), 0}, {fmt.Errorf("read a row: %w", pebble.ErrCorruption), 1}} {
		command := tracker.NewCommand[tracker.None, tracker.None]("change", "", tracker.Needs{}, func(*tracker.Tx, *tracker.None) (tracker.Reply, error) {
			return tracker.Reply{}, row.fault
		}, tracker.RunsWithoutWorkspace)
		query := tracker.NewQuery[tracker.None, tracker.None]("look", "", tracker.Needs{}, func(*tracker.View, *tracker.None) (tracker.Reply, error) {
			return tracker.Reply{}, row.fault
		})
		for _, op := range []*tracker.Op{command, query} {
			damaged.Store(0)
			if _, err := b.do(ws, op, &tracker.None{}); !errors.Is(err, row.fault) || damaged.Load() != row.told {
				t.Errorf("%s with %q: %v, told %d times", op.Name, row.fault, err, damaged.Load())
			}
		}
	}
}
