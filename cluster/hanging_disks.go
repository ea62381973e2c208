package cluster

import (
	"slices"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
)

// hangingDisks knows, from one round to the next, the nodes whose disks hang.
type hangingDisks struct{ ages placement.Ages[string] }

// update takes the reports of a round, and returns the nodes whose disks hang and those of them whose disks have
// hung for long. If the disk of a node hung and its report is missing, its disk hangs still: a report that comes
// too late must not begin the time anew. A dead node is none of them, since its time begins when it dies.
func (h *hangingDisks) update(members []placement.Member, reports map[string][]placement.GroupReport, now time.Time, long time.Duration) (hang, hangLong map[string]bool) {
	hang = map[string]bool{}
	for _, m := range members {
		groups, answers := reports[m.Name]
		says := slices.ContainsFunc(groups, func(r placement.GroupReport) bool { return r.Stuck })
		if says || !answers && !isDown(m.State) && h.ages.Found(m.Name) {
			hang[m.Name] = true
		}
	}
	return hang, h.ages.Update(hang, now, long)
}

func isDown(state membership.NodeState) bool {
	return state == membership.NodeDead || state == membership.NodeLeft
}
