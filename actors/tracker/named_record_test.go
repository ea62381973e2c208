package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/storage"
)

func TestNamedRecords_LiveAndDie(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	label := decode[Label](t, w.run(&w.ann, Labels.Create, &CreateLabelIn{Name: "bug", LabelFields: LabelFields{Color: Some("red")}}).Body)
	if label.Name != "bug" || *label.Color != "red" || label.Description != nil || label.CreatedAt != label.UpdatedAt || string(label.OrganizationID) != w.workspace.String() {
		t.Errorf("label %+v", label)
	}
	changed := decode[Label](t, w.run(&w.gus, Labels.Patch, &PatchLabelIn{ID: string(label.ID), LabelFields: LabelFields{Color: Opt[string]{Set: true, Null: true}, Description: Some("x")}}).Body)
	if changed.Name != "bug" || changed.Color != nil || *changed.Description != "x" || changed.UpdatedAt <= label.UpdatedAt || changed.CreatedAt != label.CreatedAt {
		t.Errorf("changed label %+v", changed)
	}
	same := decode[Label](t, w.run(&w.ann, Labels.Patch, &PatchLabelIn{ID: string(label.ID), Name: Some("bug")}).Body)
	if same.UpdatedAt != changed.UpdatedAt {
		t.Errorf("a change that changes nothing is one: %+v", same)
	}
	reply, err := w.ask(&w.gus, Labels.Get, &RecordIn{ID: string(label.ID)})
	if err != nil || *decode[Label](t, reply.Body).Description != "x" {
		t.Errorf("label %s, %v", reply.Body, err)
	}
	project := decode[Project](t, w.run(&w.ann, Projects.Create, &CreateProjectIn{Name: "p", ProjectFields: ProjectFields{LeadID: Some("nobody known")}}).Body)
	cycle := decode[Cycle](t, w.run(&w.ann, Cycles.Create, &CreateCycleIn{Name: "c"}).Body)
	template := decode[Template](t, w.run(&w.ann, Templates.Create, &CreateTemplateIn{Name: "t"}).Body)
	w.verify()

	issue := w.create(CreateIssueIn{IssueFields: IssueFields{ProjectID: Some(string(project.ID)), CycleID: Some(string(cycle.ID)), LabelIDs: Some([]string{string(label.ID)})}})
	for _, row := range []struct {
		remove, read *Op
		id           string
	}{
		{Labels.Delete, Labels.Get, string(label.ID)}, {Projects.Delete, Projects.Get, string(project.ID)},
		{Cycles.Delete, Cycles.Get, string(cycle.ID)}, {Templates.Delete, Templates.Get, string(template.ID)},
	} {
		if reply := w.run(&w.ann, row.remove, &RecordIn{ID: row.id}); reply.Outcome != NoContent {
			t.Errorf("%s: %+v", row.remove.Name, reply)
		}
		for _, id := range []string{row.id, "nonsense", w.workspace.String()} {
			_, _, err := w.try(&w.ann, row.remove, &RecordIn{ID: id})
			wantCode(t, err, CodeNotFound)
			_, err = w.ask(&w.ann, row.read, &RecordIn{ID: id})
			wantCode(t, err, CodeNotFound)
		}
	}
	if got := w.get(issue.ID); *got.ProjectID != string(project.ID) || *got.CycleID != string(cycle.ID) || !slices.Equal(got.labels(), []string{string(label.ID)}) {
		t.Errorf("the issue lost what it names: %+v", got)
	}
	w.verify()
}

func TestCreateLabel_Bounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	most := quotas[labelTable].most
	w.run(&w.ann, NewCommand[None, None]("fill", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, tx.SetCounter(recordCountTable, storage.ID{15: byte(labelTable)}, most-1)
	}), &None{})
	w.run(&w.ann, Labels.Create, &CreateLabelIn{Name: "the last"})
	_, _, err := w.try(&w.ann, Labels.Create, &CreateLabelIn{Name: "too many"})
	wantCode(t, err, CodeConflict)
}

func TestListLabels_Pages(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var want []string
	for i := range 5 {
		w.run(&w.ann, Labels.Create, &CreateLabelIn{Name: fmt.Sprint(i)})
		want = append([]string{fmt.Sprint(i)}, want...)
	}
	var got []string
	in := PageIn{Limit: 2}
	for pages := 1; ; pages++ {
		reply, err := w.ask(&w.gus, Labels.List, &in)
		if err != nil {
			t.Fatal(err)
		}
		list := decode[LabelList](t, reply.Body)
		for _, l := range list.Labels {
			got = append(got, l.Name)
		}
		if in.Cursor = list.NextCursor; in.Cursor == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

// A list without a limit ends early if its records are large.
func TestListTemplates_LargePageEndsEarly(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	large := strings.Repeat("x", 1<<20)
	for range 10 {
		w.run(&w.ann, Templates.Create, &CreateTemplateIn{Name: "t", TemplateFields: TemplateFields{Description: Some(large)}})
	}
	var pages []int
	for in := (PageIn{}); len(pages) == 0 || in.Cursor != ""; {
		reply, err := w.ask(&w.ann, Templates.List, &in)
		if err != nil {
			t.Fatal(err)
		}
		list := decode[TemplateList](t, reply.Body)
		pages = append(pages, len(list.Templates))
		in.Cursor = list.NextCursor
	}
	if !slices.Equal(pages, []int{8, 2}) {
		t.Errorf("pages of %v templates", pages)
	}
}

func TestPeriod_NeverEndsBeforeItStarts(t *testing.T) {
	t.Parallel()
	const one, two, three = "2026-11-21T00:00:00Z", "2026-11-22T01:00:00+01:00", "2026-11-23T00:00:00Z"
	null := Opt[string]{Set: true, Null: true}
	w := newIssueFixture(t)
	cycle := decode[Cycle](t, w.run(&w.ann, Cycles.Create, &CreateCycleIn{Name: "c", PeriodFields: PeriodFields{StartsAt: Some(two), EndsAt: Some(two)}}).Body)
	if *cycle.StartsAt != "2026-11-22T00:00:00.000Z" || *cycle.EndsAt != *cycle.StartsAt {
		t.Errorf("cycle %+v", cycle)
	}
	for _, row := range []struct {
		fields PeriodFields
		fault  string
	}{
		{PeriodFields{EndsAt: Some(one)}, "endsAt"},
		{PeriodFields{StartsAt: Some(three)}, "startsAt"},
		{PeriodFields{StartsAt: Some(three), EndsAt: Some(one)}, "endsAt"},
		{PeriodFields{StartsAt: Some(one), EndsAt: Some(three)}, ""},
		{PeriodFields{StartsAt: null}, ""},
		{PeriodFields{EndsAt: Some(one)}, ""},
		{PeriodFields{EndsAt: null, StartsAt: Some(three)}, ""},
	} {
		_, _, err := w.try(&w.ann, Cycles.Patch, &PatchCycleIn{ID: string(cycle.ID), PeriodFields: row.fields})
		if row.fault != "" {
			wantCode(t, err, CodeBadRequest, row.fault)
		} else if err != nil {
			t.Errorf("%+v: %v", row.fields, err)
		}
	}
	var faults Faults
	(&PeriodFields{StartsAt: Some(three), EndsAt: Some(one)}).Validate(&faults)
	if !faults.Has("endsAt") {
		t.Error("a period that ends before it starts is none")
	}
	faults = Faults{}
	(&PeriodFields{StartsAt: Some("9999-12-31T23:59:59-01:00"), EndsAt: Some("0000-01-01T00:00:00+01:00")}).Validate(&faults)
	if !faults.Has("startsAt") || !faults.Has("endsAt") {
		t.Error("a moment outside of the four-digit years is none")
	}
	_, _, err := w.try(&w.ann, Projects.Patch, &PatchProjectIn{
		ID:            string(decode[Project](t, w.run(&w.ann, Projects.Create, &CreateProjectIn{Name: "p", ProjectFields: ProjectFields{PeriodFields: PeriodFields{EndsAt: Some(one)}}}).Body).ID),
		ProjectFields: ProjectFields{PeriodFields: PeriodFields{StartsAt: Some(two)}},
	})
	wantCode(t, err, CodeBadRequest, "startsAt")
	w.verify()
}
