package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Tallies are what issue analytics are added up from, kept in the batch of every
// change: a walk over all issues would grow with the workspace. A row of
// issueTally counts the issues of one kind in one team and sums their estimates;
// drafts and restricted issues are in none. What is seen of an issue that is
// neither follows from its team, so a caller's numbers are sums over the rows of
// the teams that the caller sees.
//
//	kind below tallyTexts (1 byte) | team (16)
//	kind from tallyTexts on (1 byte) | text | team (16)

// tallyKind says what a tally counts by. Those below tallyTexts stand for one
// status and priority each.
type tallyKind byte

const (
	tallyTexts    tallyKind = 0x80
	tallyAssignee           = tallyTexts + 0
	tallyProject            = tallyTexts + 1
	tallyCycle              = tallyTexts + 2
)

// tallyState is the kind for issues of a status and priority.
func tallyState(s IssueStatus, p IssuePriority) tallyKind {
	return tallyKind(s.rank()<<2 | p.rank()&3)
}

func (k tallyKind) statusRank() int   { return int(k >> 2) }
func (k tallyKind) priorityRank() int { return int(k & 3) }

func (k *counterKey) appendTally(b storage.Key) storage.Key {
	b = b.Byte(byte(k.kind))
	if k.kind >= tallyTexts {
		b = b.Str(k.text)
	}
	return b.ID(k.subject)
}

// parseTally reads the key of a tally's row back.
func parseTally(fields []byte) (kind tallyKind, text string, team storage.ID, err error) {
	ok, rest := false, []byte(nil)
	if len(fields) > 0 {
		kind, rest = tallyKind(fields[0]), fields[1:]
		ok = kind >= tallyTexts || kind.statusRank() < len(issueStatuses) && kind.priorityRank() < len(issuePriorities)
	}
	if ok && kind >= tallyTexts {
		text, rest, ok = storage.CutStr(rest)
	}
	if !ok || len(rest) != len(team) {
		return 0, "", team, fmt.Errorf("%w: key of a tally, %d bytes", storage.ErrFormat, len(fields))
	}
	copy(team[:], rest)
	return kind, text, team, nil
}

// tallied is what tallies and burndowns know of an issue. The zero value is of an
// issue that is not there.
type tallied struct {
	team       storage.ID
	counts     bool // is in the tallies
	restricted bool
	state      tallyKind
	assignee   string // empty for none, as below
	project    string
	cycle      string
	estimate   uint64
	cycleState burndownState
}

func talliedOf(t *Issue, restricted bool) tallied {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	a := tallied{
		team: t.team(), counts: !t.IsDraft && !restricted, restricted: restricted, state: tallyState(t.Status, t.Priority),
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

// estimateOf is what an estimate adds to a sum. None is negative.
func estimateOf(estimate *int64) uint64 {
	if estimate == nil {
		return 0
	}
	return uint64(max(*estimate, 0))
}

// tallyKeys is how many tallies an issue can be in.
const tallyKeys = 4

// key gives the i-th tally that the issue is in; false when it is in none there.
func (a *tallied) key(i int) (counterKey, bool) {
	k := counterKey{table: issueTally, subject: a.team}
	switch i {
	case 0:
		k.kind = a.state
		return k, a.counts
	case 1:
		k.kind, k.text = tallyAssignee, a.assignee
	case 2:
		k.kind, k.text = tallyProject, a.project
	case 3:
		k.kind, k.text = tallyCycle, a.cycle
	}
	return k, a.counts && k.text != ""
}

// tallyIssue counts a change of an issue: from is nil for a new one, to for one
// that is removed. Whether it is restricted does not change with its value.
func (tx *Tx) tallyIssue(from *storage.Row[Issue], to *Issue) error {
	var before, after tallied
	restricted := from != nil && from.Flags&issueRestricted != 0
	if from != nil {
		before = talliedOf(&from.Value, restricted)
	}
	if to == nil {
		if err := tx.eraseBurndown(from.Value.id()); err != nil {
			return err
		}
		return tx.count(&before, &after)
	}
	after = talliedOf(to, restricted)
	if before == after {
		return nil
	}
	if err := tx.recordBurndown(to, from == nil, &before, &after); err != nil {
		return err
	}
	return tx.count(&before, &after)
}

// tallyRestricted counts an issue, as it is stored, that becomes restricted or
// ceases to be. Call it once with each change of the flag.
func (tx *Tx) tallyRestricted(t *Issue, becomes bool) error {
	before, after := talliedOf(t, !becomes), talliedOf(t, becomes)
	if err := tx.recordBurndown(t, false, &before, &after); err != nil {
		return err
	}
	return tx.count(&before, &after)
}

// count moves an issue from the tallies it was in to those it is in now.
func (tx *Tx) count(before, after *tallied) error {
	if !before.counts && !after.counts {
		return nil
	}
	was, is := amount{n: 1, sum: before.estimate}, amount{n: 1, sum: after.estimate}
	for i := range tallyKeys {
		old, out := before.key(i)
		now, in := after.key(i)
		if out && in && old == now && was == is {
			continue
		}
		if out {
			sums, err := tx.ledger.counters.change(tx, old)
			if err != nil {
				return err
			}
			sums.sub(was)
		}
		if in {
			sums, err := tx.ledger.counters.change(tx, now)
			if err != nil {
				return err
			}
			sums.add(is)
		}
	}
	return nil
}
