package tracker

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// analyticsRows are the plain rows of issue analytics.
var analyticsRows = []storage.RowSpec{
	{ID: issueAggregateTable, Name: "issue aggregate", Check: checkAggregate},
	{ID: burndownTable, Name: "burndown", Check: checkBurndown},
	{ID: burndownByIssue, Name: "burndown by issue", Check: checkBurndownByIssue},
}

// checkAggregate checks an aggregate's form; aggregateCheck checks its value.
func checkAggregate(_ *storage.View, fields, value []byte) error {
	if _, _, _, err := parseAggregate(fields); err != nil {
		return err
	}
	_, err := parseAmount(value)
	return err
}

// aggregateCheck counts the issues of a workspace again. It keeps hashes of the aggregates'
// keys, so its memory is proportional to the number of teams, assignees, projects and
// cycles of issues.
type aggregateCheck struct {
	due map[uint64]amount
	key storage.Key
}

func newAggregateCheck() *aggregateCheck { return &aggregateCheck{due: map[uint64]amount{}} }

// add counts an issue and checks that the burndown of its cycle has it.
func (p *aggregateCheck) add(v *storage.View, row *storage.Row[Issue], report func(string, ...any)) error {
	a := aggregatedOf(&row.Value, row.Flags&issueRestricted != 0)
	for i := range aggregateKeys {
		if k, in := a.key(i); in {
			p.key = k.appendTo(p.key[:0])
			h := xxhash.Sum64(p.key)
			sum := p.due[h]
			sum.add(amount{n: 1, sum: a.estimate})
			p.due[h] = sum
		}
	}
	if a.cycleState == burndownOut {
		return nil
	}
	there, err := v.Has(burndownTable, burndownKey(storage.Key(nil).Str(a.cycle), row.Value.id()))
	if err == nil && !there {
		report("the burndown of its cycle %q does not have it", a.cycle)
	}
	return err
}

// compare compares the counts with the aggregates.
func (p *aggregateCheck) compare(v *storage.View, add func(storage.Problem)) error {
	report := reportTo(add)
	err := v.Rows(issueAggregateTable, nil, nil, func(fields, value []byte) (bool, error) {
		got, err := parseAmount(value)
		if err != nil {
			return true, nil // the row's own check reports it
		}
		h := xxhash.Sum64(fields)
		if want := p.due[h]; got != want || got.n == 0 {
			report("issue aggregate", fields, "says %d issues and estimates of %d, there are %d and %d", got.n, got.sum, want.n, want.sum)
		}
		delete(p.due, h)
		return true, nil
	})
	if err == nil && len(p.due) > 0 {
		report("issue aggregate", nil, "%d aggregates are missing", len(p.due))
	}
	return err
}

// checkBurndown checks that a row's changes are in order, and that its last state is
// that of its issue.
func checkBurndown(v *storage.View, fields, value []byte) error {
	if len(fields) <= storage.ListedKeyLen {
		return fmt.Errorf("%w: key of a burndown, %d bytes", storage.ErrFormat, len(fields))
	}
	encoded, pk := fields[:len(fields)-storage.ListedKeyLen], fields[len(fields)-storage.ListedKeyLen:]
	cycle, rest, ok := storage.CutStr(encoded)
	if !ok || len(rest) > 0 {
		return fmt.Errorf("%w: cycle of a burndown", storage.ErrFormat)
	}
	rec, estimate, _, err := parseBurndown(value)
	if err != nil {
		return err
	}
	changes, err := burndownChanges(value)
	if err != nil {
		return err
	}
	if len(changes) == 0 || len(changes) > maxBurndownChanges {
		return fmt.Errorf("has %d changes", len(changes))
	}
	last := burndownChange{day: -1}
	for _, c := range changes {
		if c.day <= last.day || c.state == last.state {
			return fmt.Errorf("day %d, state %d is not a change from day %d, state %d", c.day, c.state, last.day, last.state)
		}
		last = c
	}
	row, err := issues.Get(v, pk)
	if err != nil {
		return err
	}
	if row == nil {
		return errors.New("its issue is not there")
	}
	a := aggregatedOf(&row.Value, row.Flags&issueRestricted != 0)
	if a.cycle != cycle {
		a.cycleState = burndownOut
	}
	if a.cycleState == burndownOut {
		a.estimate = 0
	}
	if last.state != a.cycleState || estimate != a.estimate {
		return fmt.Errorf("says state %d and estimate %d, its issue state %d and estimate %d", last.state, estimate, a.cycleState, a.estimate)
	}
	if rec.Header() != a.burndownHeader() {
		return fmt.Errorf("its header says flags %d and team %s, its issue flags %d and team %s", rec.Flags(), rec.Team(), row.Flags, row.Team)
	}
	there, err := v.Has(burndownByIssue, append(bytes.Clone(pk), encoded...))
	if err == nil && !there {
		err = errors.New("its issue does not lead to it")
	}
	return err
}

// checkBurndownByIssue checks that the row of a burndown exists for an entry by issue.
func checkBurndownByIssue(v *storage.View, fields, _ []byte) error {
	if len(fields) <= storage.ListedKeyLen {
		return fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(fields))
	}
	pk, cycle := fields[:storage.ListedKeyLen], fields[storage.ListedKeyLen:]
	there, err := v.Has(burndownTable, append(bytes.Clone(cycle), pk...))
	if err == nil && !there {
		err = errors.New("leads to a burndown that is not there")
	}
	return err
}
