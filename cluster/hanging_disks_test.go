package cluster

import (
	"testing"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
)

// A disk hangs again and again, each time so shortly that only its node says so. A report that is missing does not
// begin the time anew after which its replicas are made elsewhere.
func TestHangingDisks_LateReportOfANodeThatHasHung(t *testing.T) {
	t.Parallel()
	const long = 5 * time.Minute
	members := []placement.Member{{Name: "a", State: membership.NodeAlive}, {Name: "b", State: membership.NodeAlive}}
	works := []placement.GroupReport{{Shard: 1}}
	var disks hangingDisks
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	look := func(b []placement.GroupReport) (hang, hangLong map[string]bool) {
		now = now.Add(time.Second)
		reports := map[string][]placement.GroupReport{"a": works}
		if b != nil {
			reports["b"] = b
		}
		return disks.update(members, reports, now, long)
	}
	for second := range int(long/time.Second) + 1 {
		report := []placement.GroupReport{{Shard: 1, Hung: true}}
		if second%60 == 30 {
			report = nil
		}
		if hang, _ := look(report); !hang["b"] || hang["a"] {
			t.Fatalf("after %d seconds the disks of %v hang", second, hang)
		}
	}
	if _, hangLong := look([]placement.GroupReport{{Shard: 1, Hung: true}}); !hangLong["b"] {
		t.Error("its disk has not hung for long")
	}
	if hang, _ := look(works); hang["b"] {
		t.Error("its rest does not end")
	}
}
