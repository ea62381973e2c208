package tracker

import (
	"fmt"

	"switchyard/storage"
)

// template returns a template, or nil if it does not exist, which is not an error of
// the caller that names it (Decision 15).
func (v *View) template(id string) (*Template, error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, nil
	}
	row, err := templates.Get(v, storage.Key(nil).DescID(parsed))
	if err != nil {
		return nil, fmt.Errorf("read a template: %w", err)
	}
	if row == nil {
		return nil, nil
	}
	return &row.Value, nil
}

// templateFor returns the fields and the team of a creation, with absent fields taken
// from its template (Decision 21): the one that it names, or its team's default one.
// Faults of the creation itself go to faults. Without a template the fields are
// unchanged, and only the team is read.
func (tx *Tx) templateFor(in *IssueFields, faults *Faults) (*IssueFields, *storage.Row[Team], error) {
	if in.TemplateID.Set {
		t, err := tx.template(in.TemplateID.Value)
		if err != nil {
			return nil, nil, err
		}
		team, err := tx.templateTeam(in, t)
		if err == nil && team == nil {
			team, err = tx.teamForIssue(in, faults)
		}
		if err != nil || t == nil {
			return in, team, err
		}
		fields, err := tx.fillIn(*in, t)
		return fields, team, err
	}
	team, err := tx.teamForIssue(in, faults)
	if err != nil || team == nil || team.Value.DefaultTemplateID == nil {
		return in, team, err
	}
	// The team is already decided: the team that its default template names does not
	// replace it.
	t, err := tx.template(*team.Value.DefaultTemplateID)
	if err != nil || t == nil {
		return in, team, err
	}
	fields, err := tx.fillIn(*in, t)
	return fields, team, err
}

// templateTeam returns the team that a template puts the issue into, or nil if the
// creation names one, or the template names none that the caller can use.
func (tx *Tx) templateTeam(in *IssueFields, t *Template) (*storage.Row[Team], error) {
	if t == nil || in.TeamID.Set || in.TeamKey.Set {
		return nil, nil
	}
	var named IssueFields
	fill(&named.TeamID, t.TeamID)
	fill(&named.TeamKey, t.TeamKey)
	var ignored Faults
	team, err := tx.namedTeam(&named, "", &ignored)
	if err != nil || !ignored.Empty() {
		return nil, err
	}
	return team, nil
}

// fillIn returns a creation's fields with absent ones taken from a template, except for
// the team, which templateFor decides. A parent that would be a fault in the creation
// is left out.
func (tx *Tx) fillIn(f IssueFields, t *Template) (*IssueFields, error) {
	if !f.ParentID.Set && t.ParentID != nil {
		fault, err := tx.parentFault(storage.ID{}, *t.ParentID)
		if err != nil {
			return nil, err
		}
		archived, err := tx.isArchived(*t.ParentID)
		if err != nil {
			return nil, err
		}
		if fault == "" && !archived {
			f.ParentID = Some(*t.ParentID)
		}
	}
	fill(&f.Description, t.Description)
	fill(&f.Status, t.Status)
	fill(&f.Priority, t.Priority)
	fill(&f.Resolution, t.Resolution)
	fill(&f.SubIssueSortOrder, t.SubIssueSortOrder)
	fill(&f.Estimate, t.Estimate)
	fill(&f.IsDraft, t.IsDraft)
	if !f.SnoozedUntil.Set && t.SnoozedUntil != nil {
		f.SnoozedUntil = Some(string(*t.SnoozedUntil))
	}
	fill(&f.AssigneeID, t.AssigneeID)
	fill(&f.ProjectID, t.ProjectID)
	fill(&f.CycleID, t.CycleID)
	fill(&f.LabelIDs, t.LabelIDs)
	fill(&f.Repo, t.Repo)
	fill(&f.Branch, t.Branch)
	return &f, nil
}

// fill sets an absent field to a template's value; null counts as present.
func fill[T any](field *Opt[T], value *T) {
	if !field.Set && value != nil {
		*field = Some(*value)
	}
}
