package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// A node of a larger cluster has only some of the shards. References to the others are not checked, and those
// to a shard whose rows must be there are.
func TestVerify_PartOfTheShards(t *testing.T) {
	t.Parallel()
	all := []storage.Shard{0, 1, 2, 3, 4}
	for _, row := range []struct {
		name        string
		gone, lacks []storage.Shard // whose rows are deleted, and of which the verifier knows it
		problems    bool
	}{
		{"all", nil, nil, false},
		{"one shard less", []storage.Shard{1}, []storage.Shard{1}, false},
		{"two shards less", []storage.Shard{1, 2}, []storage.Shard{1, 2}, false},
		{"without the directory", []storage.Shard{0}, []storage.Shard{0}, false},
		{"the directory alone", all[1:], all[1:], false},
		{"nothing", all, all, false},
		{"a replica that is being deleted", nil, []storage.Shard{1}, false},
		{"the rows of a shard are lost", []storage.Shard{1}, nil, true},
		{"the rows of one of two shards are lost", []storage.Shard{1, 2}, []storage.Shard{2}, true},
		{"the rows of the directory are lost", []storage.Shard{0}, []storage.Shard{1}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newTestService(t)
			for used := map[storage.Shard]bool{}; len(used) < testShards; {
				o := w.onboard(fmt.Sprintf("home-%d", len(w.buffers)))
				w.member(o, RoleMember, "read")
				used[storage.ShardOf(o.Workspace.ID.raw(), testShards)] = true
			}
			w.pass(time.Minute) // the directory hears of the members
			w.verify()
			for _, shard := range row.gone {
				from, to := storage.ShardRange(shard)
				if err := w.db.DeleteRange(from, to, pebble.NoSync); err != nil {
					t.Fatal(err)
				}
			}
			report, err := storage.VerifyPart(t.Context(), w.db, storage.Part{Shards: testShards, Lacks: row.lacks}, Schema())
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() == row.problems || report.Across != report.Found {
				t.Errorf("%d problems, %d of them across shards: %v", report.Found, report.Across, report.Problems)
			}
		})
	}
}
