package tracker

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A template has the fields of a creation, with the same rules except for null.
func TestTemplateFields_AreThoseOfACreation(t *testing.T) {
	t.Parallel()
	fields := map[string]reflect.StructField{}
	for _, typ := range []reflect.Type{reflect.TypeFor[CreateIssueIn](), reflect.TypeFor[IssueFields]()} {
		for f := range typ.Fields() {
			name := f.Tag.Get("json")
			if name != "" && name != "externalRef" && name != "templateId" {
				fields[name] = f
			}
		}
	}
	kept := reflect.TypeFor[Template]()
	for f := range reflect.TypeFor[TemplateFields]().Fields() {
		name := f.Tag.Get("json")
		of, ok := fields[name]
		if !ok {
			t.Errorf("%s is no field of a creation", name)
			continue
		}
		delete(fields, name)
		rules := func(f reflect.StructField) []string {
			all := strings.Split(f.Tag.Get("rules"), ",")
			return slices.DeleteFunc(all, func(r string) bool { return r == "" || r == "nullable" || r == "required" })
		}
		if !slices.Equal(rules(f), rules(of)) || f.Tag.Get("enum") != of.Tag.Get("enum") || f.Tag.Get("items") != of.Tag.Get("items") {
			t.Errorf("%s has the tags %s, a creation's %s", name, f.Tag, of.Tag)
		}
		if name != "title" && f.Type != of.Type {
			t.Errorf("%s is a %v, a creation's a %v", name, f.Type, of.Type)
		}
		if stored, ok := kept.FieldByName(f.Name); !ok || stored.Tag.Get("json") != name || stored.Type.Kind() != reflect.Pointer {
			t.Errorf("a template keeps no %s that may be null", name)
		}
	}
	for name := range fields {
		t.Errorf("a template takes no %s", name)
	}
}

func everyField(w *issueFixture, parent IssueID) TemplateFields {
	return TemplateFields{
		Title: Some("Title"), TeamKey: Some("web"), TeamID: Some(w.web), Description: Some("d"), Status: Some(StatusTodo), Priority: Some(PriorityHigh), Resolution: Some("obsolete"),
		ParentID: Some(parent), SubIssueSortOrder: Some(1.5), Estimate: Some[int64](3), IsDraft: Some(true), SnoozedUntil: Some("2030-01-01T00:00:00+01:00"),
		AssigneeID: Some("bot"), ProjectID: Some("p"), CycleID: Some("c"), LabelIDs: Some([]string{"l", "l", "m"}), Repo: Some("a/b"), Branch: Some("main"),
	}
}

func (w *issueFixture) template(f TemplateFields) Template {
	w.Helper()
	return decode[Template](w, w.run(&w.ann, Templates.Create, &CreateTemplateIn{Name: "t", TemplateFields: f}).Body)
}

func TestCreateIssue_TemplateFillsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	template := w.template(everyField(w, parent.ID))
	if !slices.Equal(*template.LabelIDs, []string{"l", "l", "m"}) || *template.SnoozedUntil != "2029-12-31T23:00:00.000Z" {
		t.Errorf("template %+v", template)
	}

	issue := w.create(CreateIssueIn{Title: "Own", IssueFields: IssueFields{TemplateID: Some(string(template.ID))}})
	got := reflect.ValueOf(issue.Issue)
	want := reflect.ValueOf(template)
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		switch name {
		case "ID", "OrganizationID", "Name", "Title", "TeamKey", "LabelIDs", "CreatedAt", "UpdatedAt":
			continue
		}
		value := got.FieldByName(name)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		if !reflect.DeepEqual(value.Interface(), want.Field(i).Elem().Interface()) {
			t.Errorf("%s is %v, the template's %v", name, value, want.Field(i).Elem())
		}
	}
	if issue.Title != "Own" || *issue.Identifier != "WEB-1" || !slices.Equal(issue.labels(), []string{"l", "m"}) {
		t.Errorf("issue %+v", issue)
	}

	// A field in the request, null included, overrides the template's.
	null := func() Opt[string] { return Opt[string]{Set: true, Null: true} }
	issue = w.create(CreateIssueIn{IssueFields: IssueFields{
		TemplateID: Some(string(template.ID)), TeamID: Some(w.core), Description: null(), Status: Some(StatusBacklog), Priority: Some(PriorityLow), Resolution: null(),
		ParentID: Opt[IssueID]{Set: true, Null: true}, IsDraft: Some(false), SnoozedUntil: null(), AssigneeID: null(), LabelIDs: Opt[[]string]{Set: true, Null: true}, Estimate: Some[int64](0),
		SubIssueSortOrder: Opt[float64]{Set: true, Null: true}, ProjectID: Some("q"), CycleID: null(), Repo: null(), Branch: null(),
	}})
	plain := w.create(CreateIssueIn{IssueFields: IssueFields{Priority: Some(PriorityLow), Estimate: Some[int64](0), ProjectID: Some("q")}})
	issue.PossibleDuplicates = plain.PossibleDuplicates
	issue.ID, issue.Number, issue.Identifier, issue.CreatedAt, issue.UpdatedAt = plain.ID, plain.Number, plain.Identifier, plain.CreatedAt, plain.UpdatedAt
	if !reflect.DeepEqual(issue, plain) {
		t.Errorf("issue %+v, want %+v", issue, plain)
	}

	// The template in a change has no effect.
	if got := w.patch(plain.ID, IssuePatch{IssueFields: IssueFields{TemplateID: Some(string(template.ID))}}); !reflect.DeepEqual(got, plain.Issue) {
		t.Errorf("a change applied a template: %+v", got)
	}
	w.verify()
}

// References in a template to records that are deleted or hidden are no fault of the
// creation.
func TestCreateIssue_TemplateNamesWhatIsNot(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	for name, f := range map[string]TemplateFields{
		"unknown team":           {TeamID: Some(TeamID("none"))},
		"unknown key":            {TeamKey: Some("NONE")},
		"team and key disagree":  {TeamID: Some(w.web), TeamKey: Some("CORE")},
		"team hidden from gus":   {TeamID: Some(w.secret)},
		"unknown parent":         {ParentID: Some(IssueID("none"))},
		"parent hidden from gus": {ParentID: Some(hidden.ID)},
		"nothing":                {},
	} {
		f.Description = Some("filled")
		if name == "nothing" {
			f.Description = Opt[string]{Set: true, Null: true}
		}
		in := CreateIssueIn{Title: name, IssueFields: IssueFields{TemplateID: Some(string(w.template(f).ID))}}
		issue := decode[CreatedIssue](t, w.run(&w.gus, CreateIssue, &in).Body)
		if issue.TeamID != w.core || issue.ParentID != nil || (issue.Description == nil) != (name == "nothing") {
			t.Errorf("%s: %+v", name, issue)
		}
		if in.Description.Set || in.TeamID.Set || in.ParentID.Set {
			t.Errorf("%s: the input was changed", name)
		}
	}
	// They are filled in for a caller who may see them.
	in := CreateIssueIn{IssueFields: IssueFields{TemplateID: Some(string(w.template(TemplateFields{TeamKey: Some("sec"), ParentID: Some(hidden.ID)}).ID))}}
	if issue := w.create(in); issue.TeamID != w.secret || *issue.ParentID != hidden.ID {
		t.Errorf("issue %+v", issue)
	}
	for _, id := range []string{"none", w.workspace.String()} {
		if issue := w.create(CreateIssueIn{IssueFields: IssueFields{TemplateID: Some(id)}}); issue.TeamID != w.core {
			t.Errorf("issue %+v", issue)
		}
	}
	// The creation's own faults are reported.
	template := w.template(TemplateFields{TeamID: Some(w.web), ParentID: Some(hidden.ID), Description: Some("x")})
	_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{
		TemplateID: Some(string(template.ID)), TeamID: Some(TeamID("none")), ParentID: Some(IssueID("none")),
	}})
	wantCode(t, err, CodeBadRequest, "teamId", "parentId")
	w.verify()
}

func TestCreateIssue_DefaultTemplateOfTheTeam(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	setDefault := func(team TeamID, template Opt[string]) {
		w.run(&w.ann, PatchTeam, &PatchTeamIn{ID: team, DefaultTemplateID: template})
	}
	if issue := w.create(CreateIssueIn{}); issue.Description != nil { // the team is cached without a template
		t.Errorf("issue %+v", issue)
	}
	// The default template of a team names another team, whose default template names
	// the first.
	core := w.template(TemplateFields{TeamID: Some(w.web), Description: Some("core's"), LabelIDs: Some([]string{"l"})})
	web := w.template(TemplateFields{TeamID: Some(w.core), Description: Some("web's")})
	setDefault(w.core, Some(string(core.ID)))
	setDefault(w.web, Some(string(web.ID)))
	if issue := w.create(CreateIssueIn{}); issue.TeamID != w.core || *issue.Description != "core's" || issue.LabelIDs == nil {
		t.Errorf("issue %+v", issue)
	}
	if issue := w.create(CreateIssueIn{IssueFields: IssueFields{TeamKey: Some("web")}}); issue.TeamID != w.web || *issue.Description != "web's" || issue.LabelIDs != nil {
		t.Errorf("issue %+v", issue)
	}
	// A template in the request replaces the default one, even if it does not exist.
	named := w.template(TemplateFields{TeamID: Some(w.web), Priority: Some(PriorityUrgent)})
	if issue := w.create(CreateIssueIn{IssueFields: IssueFields{TemplateID: Some(string(named.ID))}}); issue.TeamID != w.web || issue.Description != nil || issue.Priority != PriorityUrgent {
		t.Errorf("issue %+v", issue)
	}
	if issue := w.create(CreateIssueIn{IssueFields: IssueFields{TemplateID: Some("none")}}); issue.TeamID != w.core || issue.Description != nil {
		t.Errorf("issue %+v", issue)
	}
	// The next creation sees that a template was changed, deleted, or is no longer the
	// default.
	w.run(&w.ann, Templates.Patch, &PatchTemplateIn{ID: string(core.ID), TemplateFields: TemplateFields{Description: Some("new")}})
	if issue := w.create(CreateIssueIn{}); *issue.Description != "new" {
		t.Errorf("issue %+v", issue)
	}
	setDefault(w.core, Opt[string]{Set: true, Null: true})
	if issue := w.create(CreateIssueIn{}); issue.Description != nil {
		t.Errorf("issue %+v", issue)
	}
	w.run(&w.ann, Templates.Delete, &RecordIn{ID: string(web.ID)})
	if issue := w.create(CreateIssueIn{IssueFields: IssueFields{TeamKey: Some("web")}}); issue.Description != nil {
		t.Errorf("issue %+v", issue)
	}
	// The look-up by externalRef comes before the template.
	first := w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some("r")}})
	again := w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some("r"), TemplateID: Some(string(core.ID))}})
	if again.ID != first.ID || again.Description != nil {
		t.Errorf("issue %+v", again)
	}
	w.verify()
}
