package tracker

import (
	"fmt"

	"switchyard/storage"
)

// PatchIssueIn is a change of one issue.
type PatchIssueIn struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
	IssuePatch
}

// PatchIssue changes the given fields. It writes nothing if no field differs.
var PatchIssue = NewCommand[PatchIssueIn, Issue]("PatchIssue", "Change an issue", Needs{Write, "issues"}, patchIssue)

func patchIssue(tx *Tx, in *PatchIssueIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if err := requireMatch(in.IfMatch, row.Version); err != nil {
		return Reply{}, err
	}
	w, err := tx.changeIssue(row, &in.IssuePatch, "")
	if err != nil {
		return Reply{}, err
	}
	shown, err := tx.shownIssue(w.body)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Body: shown, ETag: shownETag(w.new.Version, len(shown) == len(w.body))}, nil
}

// changeIssue applies a patch to an issue read in this Tx, and writes it. path is the
// patch's path in the request, for faults.
func (tx *Tx) changeIssue(row *storage.Row[Issue], patch *IssuePatch, path string) (*issueWrite, error) {
	changed := *row
	t := &changed.Value
	patch.apply(t)
	if patch.ExternalRef.Set {
		if err := tx.changeRef(t, patch.ExternalRef.Ptr()); err != nil {
			return nil, err
		}
	}
	var faults Faults
	if err := tx.changeParent(t, patch.ParentID, path, &faults); err != nil {
		return nil, err
	}
	var team *storage.Row[Team]
	if patch.TeamID.Set || patch.TeamKey.Set {
		var err error
		if team, err = tx.namedTeam(&patch.IssueFields, path, &faults); err != nil {
			return nil, err
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if t.ParentID != nil && (row.Value.ParentID == nil || *t.ParentID != *row.Value.ParentID) {
		if err := tx.refuseArchivedParent(*t.ParentID); err != nil {
			return nil, err
		}
	}
	if team != nil && team.Value.ID != t.TeamID {
		if err := tx.moveIssue(t, team); err != nil {
			return nil, err
		}
	}
	return tx.writeIssue(row, &changed)
}

// changeRef sets or clears an issue's externalRef, unless another issue has it.
func (tx *Tx) changeRef(t *Issue, ref *string) error {
	if ref != nil && (t.ExternalRef == nil || *t.ExternalRef != *ref) {
		taken, err := tx.issueWithRef(*ref)
		if err != nil {
			return err
		}
		if taken != nil {
			return refTaken()
		}
	}
	t.ExternalRef = ref
	return nil
}

// changeParent sets or clears an issue's parent. The present parent is not checked
// again. Null does not clear a parent that the caller may not see; only another parent
// replaces it (Decision 26).
func (tx *Tx) changeParent(t *Issue, parent Opt[IssueID], path string, faults *Faults) error {
	if !parent.Set || parent.Null && t.ParentID == nil {
		return nil
	}
	if t.ParentID != nil {
		seen, err := (&visibility{v: &tx.View}).links(t.parent())
		switch {
		case err != nil:
			return err
		case seen && !parent.Null && *t.ParentID == parent.Value, !seen && parent.Null:
			return nil
		}
	}
	if !parent.Null {
		fault, err := tx.parentFault(t.id(), parent.Value)
		if err != nil {
			return err
		}
		if fault != "" {
			faults.Add(path+"parentId", fault)
			return nil
		}
	}
	t.ParentID = parent.Ptr()
	return nil
}

// moveIssue moves an issue to another team, in which it gets the next number. Its old
// identifier still finds it (Decision 14).
func (tx *Tx) moveIssue(t *Issue, team *storage.Row[Team]) error {
	if err := tx.retireIdentifier(t); err != nil {
		return fmt.Errorf("retire an identifier: %w", err)
	}
	t.TeamID = team.Value.ID
	if err := tx.number(t, team.Team, team.Value.Key); err != nil {
		return fmt.Errorf("number an issue: %w", err)
	}
	return nil
}
