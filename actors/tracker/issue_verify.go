package tracker

import (
	"bytes"
	"errors"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// issueRows are the plain rows of issues.
var issueRows = []storage.RowSpec{
	{ID: identifierTable, Name: "identifier", Check: checkIdentifier, Counting: storage.Counted},
	{ID: identifierByIssue, Name: "former identifier", Check: checkFormer, Counting: storage.Counted},
	{ID: historyTable, Name: "history", Check: checkHistory, Counting: storage.Counted},
}

// checkIdentifier checks that the issue of an identifier exists and has or had it.
func checkIdentifier(v *storage.View, fields, value []byte) error {
	if len(value) != len(storage.ID{}) {
		return fmt.Errorf("%w: identifier's value of %d bytes", storage.ErrFormat, len(value))
	}
	id := storage.ID(value)
	row, err := issues.Get(v, issueKey(id))
	if err != nil {
		return err
	}
	if row == nil {
		return fmt.Errorf("leads to issue %s, which is not there", id)
	}
	if current := row.Value.Identifier; current != nil && bytes.Equal(storage.Key(nil).Str(*current), fields) {
		return nil
	}
	former, err := v.Has(identifierByIssue, append(storage.Key(nil).ID(id), fields...))
	if err == nil && !former {
		err = fmt.Errorf("leads to issue %s, which neither has nor had it", id)
	}
	return err
}

// checkFormer checks that a former identifier still finds its issue.
func checkFormer(v *storage.View, fields, _ []byte) error {
	id := storage.ID{}
	if len(fields) <= len(id) {
		return fmt.Errorf("%w: former identifier of %d bytes", storage.ErrFormat, len(fields))
	}
	copy(id[:], fields)
	value, err := v.Value(identifierTable, fields[len(id):], nil)
	if err == nil && !bytes.Equal(value, id[:]) {
		err = errors.New("the identifier does not lead to this issue")
	}
	return err
}

// checkIssues checks that every issue of a workspace agrees with its team's counter,
// its identifier, its parents, its grants and the aggregates. The check of indexes covers
// the uniqueness of externalRef.
func checkIssues(v *storage.View, report func(storage.Problem)) error {
	numbers, aggregates := map[storage.ID]*numberSet{}, newAggregateCheck()
	err := issues.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := issues.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		report := func(format string, args ...any) {
			report(storage.Problem{Table: issues.Name, Key: bytes.Clone(pk), Text: fmt.Sprintf(format, args...)})
		}
		if numbers[row.Team] == nil {
			if numbers[row.Team], err = newNumberSet(v, row.Team, report); err != nil {
				return false, err
			}
		}
		if err := checkRestricted(v, pk, rec, report); err != nil {
			return false, err
		}
		t := &row.Value
		checkFields(t, v.Workspace(), report)
		checkClosing(v, pk, t, report)
		if err := aggregates.add(v, row, report); err != nil {
			return false, err
		}
		if t.Number == nil || t.Identifier == nil {
			report("has no number or no identifier")
			return true, nil
		}
		numbers[row.Team].add(*t.Number, report)
		value, err := v.Value(identifierTable, storage.Key(nil).Str(*t.Identifier), nil)
		if err != nil {
			return false, err
		}
		if id := t.id(); !bytes.Equal(value, id[:]) {
			report("its identifier %s does not lead to it", *t.Identifier)
		}
		return true, checkParents(v, t, report)
	})
	if err != nil {
		return err
	}
	return aggregates.compare(v, report)
}

func checkFields(t *Issue, workspace storage.ID, report func(string, ...any)) {
	if string(t.OrganizationID) != workspace.String() {
		report("says it belongs to workspace %s", t.OrganizationID)
	}
	if t.Status.rank() == 0xff || t.Priority.rank() == 0xff {
		report("has status %q and priority %q", t.Status, t.Priority)
	}
	if t.SnoozedUntil != nil && At(t.SnoozedUntil.Time()) != *t.SnoozedUntil {
		report("is snoozed until %q, which is not a timestamp", *t.SnoozedUntil)
	}
	var labels []string
	if t.LabelIDs != nil && json.Unmarshal([]byte(*t.LabelIDs), &labels) != nil {
		report("its labelIds are no JSON text of an array of strings")
	}
}

// checkParents follows the parents to the topmost one; a loop shows as a chain without
// an end.
func checkParents(v *storage.View, t *Issue, report func(string, ...any)) error {
	parent := t.parent()
	if parent == (storage.ID{}) && t.ParentID != nil {
		report("its parent is called %q, which is not an id", *t.ParentID)
	}
	for above := 0; parent != (storage.ID{}); above++ {
		if above == maxParentChain {
			report("its parents make a loop, or a chain of more than %d", maxParentChain)
			return nil
		}
		next := storage.ID{}
		found, err := issues.Record(v, issueKey(parent), func(rec storage.Record) error {
			next = parentIn(rec)
			return nil
		})
		if err != nil {
			return err
		}
		if !found {
			report("its parent %s is not there", parent)
			return nil
		}
		parent = next
	}
	return nil
}

// numberSet is a bit set of the issue numbers of a team.
type numberSet struct {
	counter uint64
	seen    map[uint64]uint64
}

func newNumberSet(v *storage.View, team storage.ID, report func(string, ...any)) (*numberSet, error) {
	found, err := v.Has(teamTable, storage.Key(nil).DescID(team))
	if err != nil {
		return nil, err
	}
	if !found {
		report("its team %s is not there", team)
	}
	counter, err := v.Number(teamNumber, team[:])
	return &numberSet{counter: counter, seen: map[uint64]uint64{}}, err
}

func (s *numberSet) add(n uint64, report func(string, ...any)) {
	if n == 0 || n > s.counter {
		report("its number %d was never given: its team counted to %d", n, s.counter)
	}
	if s.seen[n>>6]&(1<<(n&63)) != 0 {
		report("its number %d is another issue's of its team, too", n)
	}
	s.seen[n>>6] |= 1 << (n & 63)
}
