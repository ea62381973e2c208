package cluster

import (
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
)

// hangRest is how long the disk of a node must have worked before the node is taken for one whose disk does. Each
// further time that it hangs would stop the shards that it had been given to lead for some seconds.
const hangRest = 30 * time.Second

// hangingDisks knows, from one round to the next, the nodes whose disks hang. Its zero value is ready for use.
type hangingDisks struct {
	last map[string]time.Time // when each of them was found last
	ages placement.Ages[string]
}

// update takes the reports of a round, and returns the nodes whose disks hang or have done so within hangRest,
// and those of them that have been among these for long. If the report of one of them is missing, its disk hangs
// still: a report that comes too late must not begin the time anew. A dead node is none of them, since its time
// begins when it dies.
func (h *hangingDisks) update(members []placement.Member, reports map[string][]placement.GroupReport, now time.Time, long time.Duration) (hang, hangLong map[string]bool) {
	last := map[string]time.Time{}
	hang = map[string]bool{}
	for _, m := range members {
		groups, answers := reports[m.Name]
		found, known := h.last[m.Name]
		switch {
		case isStuck(groups), known && !answers && !isDown(m.State):
			last[m.Name] = now
		case known && answers && now.Sub(found) < hangRest:
			last[m.Name] = found
		default:
			continue
		}
		hang[m.Name] = true
	}
	h.last = last
	return hang, h.ages.Update(hang, now, long)
}

func isDown(state membership.NodeState) bool {
	return state == membership.NodeDead || state == membership.NodeLeft
}
