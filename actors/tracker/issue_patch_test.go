package tracker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func patchIn(id IssueID, ifMatch string, p IssuePatch) *PatchIssueIn {
	return &PatchIssueIn{ID: string(id), IfMatch: ifMatch, IssuePatch: p}
}

func TestPatchIssue_TellsWhatChanged(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{Title: "old", IssueFields: IssueFields{Estimate: Some(int64(3)), LabelIDs: Some([]string{"a"})}})
	reply := w.run(&w.ann, PatchIssue, patchIn(issue.ID, `"1"`, IssuePatch{
		Title:       Some("new"),
		IssueFields: IssueFields{Estimate: Opt[int64]{Set: true, Null: true}, LabelIDs: Some([]string{"a", "b"}), Priority: Some(PriorityMedium)},
		PRURL:       Some("https://x/1"), PRState: Some("open"),
	}))
	got := decode[Issue](t, reply.Body)
	if reply.ETag != `"2"` || got.Title != "new" || got.Estimate != nil || *got.LabelIDs != `["a","b"]` || *got.PRState != "open" || got.UpdatedAt != At(w.now) || got.CreatedAt != issue.CreatedAt {
		t.Errorf("ETag %s, issue %+v", reply.ETag, got)
	}
	if !reflect.DeepEqual(got, w.get(issue.ID)) {
		t.Error("the answer is not what is stored")
	}
	last := w.events()[1]
	want := map[string]struct{ From, To any }{
		"title": {"old", "new"}, "estimate": {3.0, nil}, "labelIds": {`["a"]`, `["a","b"]`}, "prUrl": {nil, "https://x/1"}, "prState": {nil, "open"},
	}
	if last.Type != "issue.updated" || !reflect.DeepEqual(last.Changes, want) || !reflect.DeepEqual(last.Data, got) {
		t.Errorf("event %+v, want changes %v", last, want)
	}
	w.verify()
}

func TestPatchIssue_ChangesNothing(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	issue := w.create(CreateIssueIn{Title: "t", IssueFields: IssueFields{
		ExternalRef: Some("r"), ParentID: Some(parent.ID), SnoozedUntil: Some("2027-01-01T00:00:00Z"), SubIssueSortOrder: Some(0.5), Branch: Some(""),
	}})
	before := len(w.events())
	for _, p := range []IssuePatch{
		{},
		{Title: Some("t"), IssueFields: IssueFields{ExternalRef: Some("r"), TeamID: Some(w.core), TeamKey: Some("core"), ParentID: Some(parent.ID)}},
		{IssueFields: IssueFields{SnoozedUntil: Some("2027-01-01T01:00:00+01:00"), SubIssueSortOrder: Some(0.5), Branch: Some(""), Repo: Opt[string]{Set: true, Null: true}}},
	} {
		reply := w.run(&w.ann, PatchIssue, patchIn(issue.ID, "", p))
		if got := decode[Issue](t, reply.Body); reply.ETag != `"1"` || !reflect.DeepEqual(got, issue.Issue) {
			t.Errorf("ETag %s, issue %+v", reply.ETag, got)
		}
	}
	if n := len(w.events()); n != before {
		t.Errorf("%d events for no change", n-before)
	}
}

func TestPatchIssue_IfMatch(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for i, header := range []string{`"0"`, `W/"1"`, "1", `"1`, "nonsense", `"2", "3"`, ","} {
		_, _, err := w.try(&w.ann, PatchIssue, patchIn(issue.ID, header, IssuePatch{Title: Some(fmt.Sprint(i))}))
		wantCode(t, err, CodePreconditionFailed)
		_, _, err = w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID), IfMatch: header})
		wantCode(t, err, CodePreconditionFailed)
	}
	for i, header := range []string{`"1"`, "*", `"9", "3"`, ""} {
		w.run(&w.ann, PatchIssue, patchIn(issue.ID, header, IssuePatch{Title: Some(fmt.Sprint(i))}))
	}
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID), IfMatch: `"5"`})
}

func TestPatchIssue_Resolution(t *testing.T) {
	t.Parallel()
	null := Opt[string]{Set: true, Null: true}
	for _, row := range []struct {
		from, to IssueStatus
		given    Opt[string]
		want     string
	}{
		{StatusDone, StatusTodo, Opt[string]{}, ""},
		{StatusCanceled, StatusTriage, Opt[string]{}, ""},
		{StatusDone, StatusTodo, Some("not_planned"), "not_planned"},
		{StatusDone, StatusCanceled, Opt[string]{}, "resolved"},
		{StatusTodo, StatusDone, Opt[string]{}, "resolved"},
		{StatusBacklog, StatusTodo, Opt[string]{}, "resolved"},
		{StatusDone, StatusCanceled, null, ""},
	} {
		issue := Issue{Status: row.from}
		resolved := "resolved"
		issue.Resolution = &resolved
		patch := IssuePatch{IssueFields: IssueFields{Status: Some(row.to), Resolution: row.given}}
		patch.apply(&issue)
		got := ""
		if issue.Resolution != nil {
			got = *issue.Resolution
		}
		if got != row.want {
			t.Errorf("%s to %s with %+v: resolution %q, want %q", row.from, row.to, row.given, got, row.want)
		}
	}
}

func TestPatchIssue_MovesTeam(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.web)}})
	issue := w.create(CreateIssueIn{})
	moved := w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamKey: Some("WEB")}})
	if moved.TeamID != w.web || *moved.Number != 2 || *moved.Identifier != "WEB-2" {
		t.Errorf("moved %+v", moved)
	}
	changes := w.events()[2].Changes
	if len(changes) != 3 || changes["identifier"].From != "CORE-1" || changes["number"].To != 2.0 || changes["teamId"].To != string(w.web) {
		t.Errorf("changes %v", changes)
	}
	back := w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.core)}})
	if *back.Identifier != "CORE-2" {
		t.Errorf("a number was used again: %s", *back.Identifier)
	}
	for _, identifier := range []string{"CORE-1", "web-2", "Core-2"} {
		if got := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{Identifier: Some(identifier)}}); len(got.Issues) != 1 || got.Issues[0].ID != issue.ID {
			t.Errorf("%s finds %v", identifier, got.Issues)
		}
	}
	w.verify()
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	for _, identifier := range []string{"CORE-1", "WEB-2", "CORE-2"} {
		if got := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{Identifier: Some(identifier)}}); len(got.Issues) != 0 {
			t.Errorf("%s still finds %v", identifier, got.Issues)
		}
	}
	if next := w.create(CreateIssueIn{}); *next.Number != 3 {
		t.Errorf("number %d after a deletion, want 3", *next.Number)
	}
	w.verify()
}

func TestPatchIssue_Refuses(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	top := w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some("taken")}})
	middle := w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(top.ID)}})
	low := w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(middle.ID)}})
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	before := len(w.events())
	for _, row := range []struct {
		name  string
		who   *Caller
		id    IssueID
		p     IssuePatch
		code  Code
		paths []string
	}{
		{"unknown issue", &w.ann, "x", IssuePatch{}, CodeNotFound, nil},
		{"hidden issue", &w.gus, hidden.ID, IssuePatch{Title: Some("t")}, CodeNotFound, nil},
		{"itself as parent", &w.ann, top.ID, IssuePatch{IssueFields: IssueFields{ParentID: Some(top.ID)}}, CodeBadRequest, []string{"parentId"}},
		{"loop", &w.ann, top.ID, IssuePatch{IssueFields: IssueFields{ParentID: Some(low.ID)}}, CodeBadRequest, []string{"parentId"}},
		{"unknown parent", &w.ann, low.ID, IssuePatch{IssueFields: IssueFields{ParentID: Some(IssueID("x"))}}, CodeBadRequest, []string{"parentId"}},
		{"hidden parent and team", &w.gus, low.ID, IssuePatch{IssueFields: IssueFields{ParentID: Some(hidden.ID), TeamID: Some(w.secret)}}, CodeBadRequest, []string{"parentId", "teamId"}},
		{"teams disagree", &w.ann, low.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.core), TeamKey: Some("WEB")}}, CodeBadRequest, []string{"teamKey"}},
		{"taken externalRef", &w.ann, low.ID, IssuePatch{Title: Some("t"), IssueFields: IssueFields{ExternalRef: Some("taken")}}, CodeConflict, nil},
	} {
		_, _, err := w.try(row.who, PatchIssue, patchIn(row.id, "", row.p))
		t.Log(row.name)
		wantCode(t, err, row.code, row.paths...)
	}
	if len(w.events()) != before || !reflect.DeepEqual(w.get(low.ID), low.Issue) {
		t.Error("a refused change left something behind")
	}
	w.verify()
}

func TestPatchIssue_ParentChainOfATree(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	chain := func(n int) (top, end IssueID) {
		for i := range n {
			next := w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Opt[IssueID]{Set: i > 0, Value: end}}}).ID
			if end = next; i == 0 {
				top = next
			}
		}
		return top, end
	}
	_, end := chain(60)
	fits, _ := chain(40)
	w.patch(fits, IssuePatch{IssueFields: IssueFields{ParentID: Some(end)}})
	tall, _ := chain(41)
	_, _, err := w.try(&w.ann, PatchIssue, patchIn(tall, "", IssuePatch{IssueFields: IssueFields{ParentID: Some(end)}}))
	wantCode(t, err, CodeBadRequest, "parentId")
	w.verify()
}

func TestDeleteIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some("r"), LabelIDs: Some([]string{"l"})}})
	child := w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(issue.ID), TeamID: Some(w.secret)}})
	reply := w.run(&w.gus, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if reply.Outcome != NoContent || reply.Body != nil {
		t.Errorf("reply %+v", reply)
	}
	_, err := w.ask(&w.ann, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	wantCode(t, err, CodeNotFound)
	if got := w.get(child.ID); got.ParentID != nil {
		t.Errorf("the child kept its parent: %+v", got)
	}
	events := w.events()[2:]
	if len(events) != 2 || events[0].Type != "issue.updated" || events[0].Changes["parentId"].From != string(issue.ID) ||
		events[1].Type != "issue.deleted" || !reflect.DeepEqual(events[1].Data, issue.Issue) {
		t.Errorf("events %+v", events)
	}
	_, _, err = w.try(&w.gus, DeleteIssue, &DeleteIssueIn{ID: string(child.ID)})
	wantCode(t, err, CodeNotFound)
	w.verify()
}

func TestDeleteIssue_ManyChildren(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for range 2*maxBudgetRecords + 1 {
		w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(issue.ID)}})
	}
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times != 3 {
		t.Errorf("%d runs, %v; want 3", times, err)
	}
	if left := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{HasParent: Some(true)}}); len(left.Issues) != 0 {
		t.Errorf("%d issues still have a parent", len(left.Issues))
	}
	w.verify()
}

func TestDeleteIssue_LargeChildrenTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	large := strings.Repeat("x", 1<<20)
	for range 10 {
		w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(issue.ID), Description: Some(large)}})
	}
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times < 2 {
		t.Errorf("%d runs, %v", times, err)
	}
	w.verify()
}

func TestBatchIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	a, b, c := w.create(CreateIssueIn{Title: "a"}), w.create(CreateIssueIn{Title: "b"}), w.create(CreateIssueIn{Title: "c", IssueFields: IssueFields{TeamID: Some(w.secret)}})
	ids := []string{string(b.ID), string(a.ID), string(b.ID), string(c.ID)}
	patch := IssuePatch{IssueFields: IssueFields{Status: Some(StatusTodo), TeamID: Some(w.web)}, PRState: Some("draft")}
	reply := w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: patch})
	got := decode[IssueList](t, reply.Body).Issues
	if !slices.Equal(titles(got), []string{"b", "a", "c"}) || *got[0].Identifier != "WEB-1" || *got[2].Identifier != "WEB-3" || got[1].Status != StatusTodo {
		t.Errorf("got %+v", got)
	}
	before := len(w.events())
	w.patch(c.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	// With an unknown or a hidden id no issue is changed.
	_, _, err := w.try(&w.gus, BatchIssues, &BatchIssuesIn{IDs: append(ids, "x"), Patch: IssuePatch{Title: Some("t")}})
	wantCode(t, err, CodeNotFound)
	var e *Error
	if errors.As(err, &e); !reflect.DeepEqual(e.Details, MissingDetails{[]string{string(c.ID), "x"}}) {
		t.Errorf("details %+v", e.Details)
	}
	// A fault in the last issue rolls back the changes of those before.
	_, _, err = w.try(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: IssuePatch{Title: Some("t"), IssueFields: IssueFields{ParentID: Some(c.ID)}}})
	wantCode(t, err, CodeBadRequest, "patch.parentId")
	_, _, err = w.try(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: IssuePatch{IssueFields: IssueFields{ExternalRef: Some("same")}}})
	wantCode(t, err, CodeConflict)
	if len(w.events()) != before+1 || w.get(a.ID).Title != "a" {
		t.Error("a refused batch left something behind")
	}
	w.verify()
}

func TestBatchIssues_TooLarge(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var ids []string
	for range 40 {
		ids = append(ids, string(w.create(CreateIssueIn{}).ID))
	}
	_, _, err := w.try(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: IssuePatch{IssueFields: IssueFields{Description: Some(strings.Repeat("x", 1<<20))}}})
	wantCode(t, err, CodePayloadTooLarge)
	w.verify()
}

// A patch that changes nothing writes nothing, and is answered with all of the issues.
func TestBatchIssues_TooLargeAnswer(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	long := strings.Repeat("\x01", maxDescription) // six bytes each in JSON
	var ids []string
	for range maxBatchBytes/(6*maxDescription) + 1 {
		ids = append(ids, string(w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(long)}}).ID))
	}
	_, _, err := w.try(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids})
	wantCode(t, err, CodePayloadTooLarge)
	reply := w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids[1:]})
	if got := decode[IssueList](t, reply.Body).Issues; len(got) != len(ids)-1 {
		t.Errorf("%d issues, want %d", len(got), len(ids)-1)
	}
	w.verify()
}

func TestListIssueChildren(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent, other := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	for i := range 5 {
		team := w.core
		if i == 2 {
			team = w.secret
		}
		w.create(CreateIssueIn{Title: fmt.Sprint(i), IssueFields: IssueFields{ParentID: Some(parent.ID), TeamID: Some(team), SnoozedUntil: Some("2030-01-01T00:00:00Z")}})
	}
	children := func(who *Caller, in ListIssueChildrenIn) (IssuePage, error) {
		reply, err := w.ask(who, ListIssueChildren, &in)
		if err != nil {
			return IssuePage{}, err
		}
		return decode[IssuePage](t, reply.Body), nil
	}
	all, err := children(&w.ann, ListIssueChildrenIn{ID: string(parent.ID)})
	if err != nil || !slices.Equal(titles(all.Issues), []string{"4", "3", "2", "1", "0"}) || all.NextCursor != "" {
		t.Errorf("got %v, %v", all, err)
	}
	first, err := children(&w.gus, ListIssueChildrenIn{ID: string(parent.ID), Limit: 3})
	if err != nil || !slices.Equal(titles(first.Issues), []string{"4", "3", "1"}) {
		t.Errorf("got %v, %v", first, err)
	}
	rest, err := children(&w.gus, ListIssueChildrenIn{ID: string(parent.ID), Limit: 3, Cursor: Some(first.NextCursor)})
	if err != nil || !slices.Equal(titles(rest.Issues), []string{"0"}) || rest.NextCursor != "" {
		t.Errorf("got %v, %v", rest, err)
	}
	_, err = children(&w.ann, ListIssueChildrenIn{ID: string(other.ID), Cursor: Some(first.NextCursor)})
	wantCode(t, err, CodeBadRequest, "query.cursor")
	_, err = children(&w.ann, ListIssueChildrenIn{ID: "x"})
	wantCode(t, err, CodeNotFound)
}

// Without a limit, large children are returned in one answer, too.
func TestListIssueChildren_LargeOnes(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	large := strings.Repeat("x", maxPageBytes/4)
	for range 8 {
		w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(parent.ID), Description: Some(large)}})
	}
	for limit, want := range map[int]int{0: 8, maxChildren: 8, 100: 4} {
		reply, err := w.ask(&w.ann, ListIssueChildren, &ListIssueChildrenIn{ID: string(parent.ID), Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		page := decode[IssuePage](t, reply.Body)
		if len(page.Issues) != want || (page.NextCursor == "") != (want == 8) {
			t.Errorf("limit %d: %d issues, cursor %q", limit, len(page.Issues), page.NextCursor)
		}
	}
}
