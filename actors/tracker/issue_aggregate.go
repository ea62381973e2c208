package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Aggregates are the counters that issue analytics are computed from, updated in the batch
// of every change: a scan of all issues would grow with the workspace. A row of
// issueAggregateTable counts the issues of one kind in one team and sums their estimates. Drafts
// and restricted issues are not counted. The team decides who sees any other issue, so a
// caller's numbers are sums over the rows of the teams that the caller sees.
//
// kind below aggregateTexts (1 byte) | team (16)
// kind from aggregateTexts on (1 byte) | text | team (16)

// aggregateKind is the property that an aggregate counts by. Values below aggregateTexts stand for
// one status and priority each.
type aggregateKind byte

const (
	aggregateTexts    aggregateKind = 0x80
	aggregateAssignee               = aggregateTexts + 0
	aggregateProject                = aggregateTexts + 1
	aggregateCycle                  = aggregateTexts + 2
)

// aggregateState returns the kind for issues of a status and priority.
func aggregateState(s IssueStatus, p IssuePriority) aggregateKind {
	return aggregateKind(s.rank()<<2 | p.rank()&3)
}

func (k aggregateKind) statusRank() int   { return int(k >> 2) }
func (k aggregateKind) priorityRank() int { return int(k & 3) }

func (k *counterKey) appendAggregate(b storage.Key) storage.Key {
	b = b.Byte(byte(k.kind))
	if k.kind >= aggregateTexts {
		b = b.Str(k.text)
	}
	return b.ID(k.subject)
}

// parseAggregate parses the key of an aggregate's row.
func parseAggregate(fields []byte) (kind aggregateKind, text string, team storage.ID, err error) {
	ok, rest := false, []byte(nil)
	if len(fields) > 0 {
		kind, rest = aggregateKind(fields[0]), fields[1:]
		ok = kind >= aggregateTexts || kind.statusRank() < len(issueStatuses) && kind.priorityRank() < len(issuePriorities)
	}
	if ok && kind >= aggregateTexts {
		text, rest, ok = storage.CutStr(rest)
	}
	if !ok || len(rest) != len(team) {
		return 0, "", team, fmt.Errorf("%w: key of an aggregate, %d bytes", storage.ErrFormat, len(fields))
	}
	copy(team[:], rest)
	return kind, text, team, nil
}

// aggregated has the properties of an issue that aggregates and burndowns use. The zero value
// stands for no issue.
type aggregated struct {
	team       storage.ID
	counts     bool // the aggregates count it
	restricted bool
	state      aggregateKind
	assignee   string // empty for none, also below
	project    string
	cycle      string
	estimate   uint64
	cycleState burndownState
}

func aggregatedOf(t *Issue, restricted bool) aggregated {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	a := aggregated{
		team: t.team(), counts: !t.IsDraft && !restricted, restricted: restricted, state: aggregateState(t.Status, t.Priority),
		assignee: text(t.AssigneeID), project: text(t.ProjectID), cycle: text(t.CycleID), estimate: estimateOf(t.Estimate),
	}
	if a.cycle != "" && !t.IsDraft {
		a.cycleState = burndownOpen
		if t.Status.Closed() {
			a.cycleState = burndownClosed
		}
	}
	return a
}

// estimateOf returns the amount that an estimate adds to a sum.
func estimateOf(estimate *int64) uint64 {
	if estimate == nil {
		return 0
	}
	return uint64(max(*estimate, 0))
}

// aggregateKeys is the number of aggregates that can count an issue.
const aggregateKeys = 4

// key returns the i-th aggregate that counts the issue, or false.
func (a *aggregated) key(i int) (counterKey, bool) {
	k := counterKey{table: issueAggregateTable, subject: a.team}
	switch i {
	case 0:
		k.kind = a.state
		return k, a.counts
	case 1:
		k.kind, k.text = aggregateAssignee, a.assignee
	case 2:
		k.kind, k.text = aggregateProject, a.project
	case 3:
		k.kind, k.text = aggregateCycle, a.cycle
	}
	return k, a.counts && k.text != ""
}

// aggregateIssue updates the aggregates for a changed issue: from is nil for a new one, to for
// a removed one. The restricted flag changes separately, see aggregateRestricted.
func (tx *Tx) aggregateIssue(from *storage.Row[Issue], to *Issue) error {
	var before, after aggregated
	restricted := from != nil && from.Flags&issueRestricted != 0
	if from != nil {
		before = aggregatedOf(&from.Value, restricted)
	}
	if to == nil {
		if err := tx.eraseBurndown(from.Value.id()); err != nil {
			return err
		}
		return tx.count(&before, &after)
	}
	after = aggregatedOf(to, restricted)
	if before == after {
		return nil
	}
	if err := tx.recordBurndown(to, from == nil, &before, &after); err != nil {
		return err
	}
	return tx.count(&before, &after)
}

// aggregateRestricted updates the aggregates for a stored issue whose restricted flag has
// changed. It is called once for each change of the flag.
func (tx *Tx) aggregateRestricted(t *Issue, becomes bool) error {
	before, after := aggregatedOf(t, !becomes), aggregatedOf(t, becomes)
	if err := tx.recordBurndown(t, false, &before, &after); err != nil {
		return err
	}
	return tx.count(&before, &after)
}

// count moves an issue from its previous aggregates to its present ones.
func (tx *Tx) count(before, after *aggregated) error {
	if !before.counts && !after.counts {
		return nil
	}
	was, is := amount{n: 1, sum: before.estimate}, amount{n: 1, sum: after.estimate}
	for i := range aggregateKeys {
		old, out := before.key(i)
		now, in := after.key(i)
		if out && in && old == now && was == is {
			continue
		}
		if out {
			sums, err := tx.buffer.counters.change(tx, old)
			if err != nil {
				return err
			}
			sums.sub(was)
		}
		if in {
			sums, err := tx.buffer.counters.change(tx, now)
			if err != nil {
				return err
			}
			sums.add(is)
		}
	}
	return nil
}
