package tracker

import (
	"testing"

	"switchyard/storage"
)

func TestVerify_TellsWhatIsWrongWithIssues(t *testing.T) {
	t.Parallel()
	// spoil writes an issue in an invalid state.
	spoil := func(tx *Tx, id IssueID, change func(*Issue)) error {
		row, err := tx.issue(string(id))
		if err != nil {
			return err
		}
		next := row.Value
		change(&next)
		_, err = issues.Update(tx, row, &next)
		return err
	}
	for _, row := range []struct {
		want string
		do   func(tx *Tx, a, b Issue) error
	}{
		{"identifier CORE-1 does not lead to it", func(tx *Tx, _, _ Issue) error {
			return tx.Writer().DeleteValue(identifierTable, storage.Key(nil).Str("CORE-1"))
		}},
		{"which is not there", func(tx *Tx, _, _ Issue) error {
			return tx.Writer().SetValue(identifierTable, storage.Key(nil).Str("CORE-9"), make([]byte, 16))
		}},
		{"which neither has nor had it", func(tx *Tx, a, _ Issue) error {
			id := a.id()
			return tx.Writer().SetValue(identifierTable, storage.Key(nil).Str("CORE-9"), id[:])
		}},
		{"the identifier does not lead to this issue", func(tx *Tx, a, _ Issue) error {
			return tx.Writer().SetValue(identifierByIssue, storage.Key(nil).ID(a.id()).Str("CORE-2"), nil)
		}},
		{"identifier's value of 3 bytes", func(tx *Tx, _, _ Issue) error {
			return tx.Writer().SetValue(identifierTable, storage.Key(nil).Str("CORE-9"), []byte("abc"))
		}},
		{"its number 2 was never given", func(tx *Tx, a, _ Issue) error { return tx.SetCounter(teamNumber, a.team(), 1) }},
		{"its number 1 is another issue's", func(tx *Tx, a, b Issue) error {
			return spoil(tx, b.ID, func(t *Issue) { t.Number = a.Number })
		}},
		{"its parent 00000000-0000-0000-0000-000000000005 is not there", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { id := IssueID(storage.ID{15: 5}.String()); t.ParentID = &id })
		}},
		{"its parents make a loop", func(tx *Tx, a, b Issue) error {
			if err := spoil(tx, a.ID, func(t *Issue) { t.ParentID = &b.ID }); err != nil {
				return err
			}
			return spoil(tx, b.ID, func(t *Issue) { t.ParentID = &a.ID })
		}},
		{"is not an id", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { id := IssueID("x"); t.ParentID = &id })
		}},
		{"its team", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { t.TeamID = TeamID(storage.ID{15: 5}.String()) })
		}},
		{`status "lost"`, func(tx *Tx, a, _ Issue) error { return spoil(tx, a.ID, func(t *Issue) { t.Status = "lost" }) }},
		{"which is not a timestamp", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { at := Timestamp("soon"); t.SnoozedUntil = &at })
		}},
		{"no JSON text of an array", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { text := "{"; t.LabelIDs = &text })
		}},
		{"says it belongs to workspace w", func(tx *Tx, a, _ Issue) error {
			return spoil(tx, a.ID, func(t *Issue) { t.OrganizationID = "w" })
		}},
		{"has no number", func(tx *Tx, a, _ Issue) error { return spoil(tx, a.ID, func(t *Issue) { t.Number = nil }) }},
		{"externalRef", func(tx *Tx, a, b Issue) error {
			ref := "r"
			if err := spoil(tx, a.ID, func(t *Issue) { t.ExternalRef = &ref }); err != nil {
				return err
			}
			return spoil(tx, b.ID, func(t *Issue) { t.ExternalRef = &ref })
		}},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			a, b := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
			w.run(&w.ann, NewCommand[None, None]("spoil", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, row.do(tx, a.Issue, b.Issue)
			}), &None{})
			w.verifyFinds(row.want)
		})
	}
}
