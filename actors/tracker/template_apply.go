package tracker

import (
	"fmt"

	"switchyard/storage"
)

// template reads a template; nil when there is none, which is no fault of whoever
// names it (Decision 15).
func (v *View) template(id string) (*Template, error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, nil
	}
	row, err := templates.Get(v, storage.Key(nil).Newest(parsed))
	if err != nil {
		return nil, fmt.Errorf("read a template: %w", err)
	}
	if row == nil {
		return nil, nil
	}
	return &row.Value, nil
}

// templateFor gives the fields and the team of a creation after its template has
// filled in what it leaves out (Decision 21): the template it names, or its team's
// default one. What is wrong with the creation itself goes to faults. Without a
// template the fields are the creation's own, and nothing is read beside the team.
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
	// The team is found already: that its default template names another one doesn't
	// lead there, where another default template would wait.
	t, err := tx.template(*team.Value.DefaultTemplateID)
	if err != nil || t == nil {
		return in, team, err
	}
	fields, err := tx.fillIn(*in, t)
	return fields, team, err
}

// templateTeam finds the team that a template puts the issue into; nil when the
// creation says which, or the template names none, or one that the caller can't use.
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

// fillIn gives a creation's fields with those it leaves out taken from a template;
// its team aside, which is found before. A parent that would be a fault if the
// creation named it is left out.
func (tx *Tx) fillIn(f IssueFields, t *Template) (*IssueFields, error) {
	if !f.ParentID.Set && t.ParentID != nil {
		fault, err := tx.parentFault(storage.ID{}, *t.ParentID)
		if err != nil {
			return nil, err
		}
		if fault == "" {
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

// fill gives a field that is absent a template's value; null counts as given.
func fill[T any](field *Opt[T], value *T) {
	if !field.Set && value != nil {
		*field = Some(*value)
	}
}
