package cluster

import (
	"slices"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
)

// hangingDisks knows, from one round to the next, the nodes whose disks hang. Its zero value is ready for use.
type hangingDisks struct {
	last map[string]time.Time // when each of them was found last
	ages placement.Ages[string]
}

// update takes the reports of a round, and returns the nodes whose disks hang or have done so within
// placement.HangRest, and those of them that have been among these for long. A node knows itself when its disk has
// hung, also if no round has seen it. If the report of one of them is missing, its disk hangs still: a report that
// comes too late must not begin the time anew. A dead node is none of them, since its time begins when it dies. When
// it is back soon, its disk is as it was.
func (h *hangingDisks) update(members []placement.Member, reports map[string][]placement.GroupReport, now time.Time, long time.Duration) (hang, hangLong map[string]bool) {
	last := map[string]time.Time{}
	hang = map[string]bool{}
	for _, m := range members {
		groups, answers := reports[m.Name]
		found, known := h.last[m.Name]
		down := !answers && isDown(m.State)
		switch {
		case isStuck(groups), known && !answers && !down:
			found = now
		case known && now.Sub(found) < placement.HangRest:
		case hasHung(groups):
			found = now.Add(-placement.HangRest) // for a report that is missing; the rest ends when the node says so
		default:
			continue
		}
		last[m.Name] = found
		if !down {
			hang[m.Name] = true
		}
	}
	h.last = last
	return hang, h.ages.Update(hang, now, long)
}

// hasHung reports whether the disk of the node with these reports has hung a moment ago.
func hasHung(groups []placement.GroupReport) bool {
	return slices.ContainsFunc(groups, func(r placement.GroupReport) bool { return r.Hung })
}

func isDown(state membership.NodeState) bool {
	return state == membership.NodeDead || state == membership.NodeLeft
}
