package tracker

import (
	"reflect"
	"testing"
)

func TestAssignIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for i, row := range []struct {
		to      Opt[string]
		ifMatch string
		etag    string
		want    any
	}{
		{Some("bob"), `"1"`, `"2"`, "bob"},
		{Some("bob"), "", `"2"`, "bob"}, // no change
		{Opt[string]{Set: true, Null: true}, "", `"3"`, nil},
	} {
		reply := w.run(&w.gus, AssignIssue, &AssignIssueIn{ID: string(issue.ID), IfMatch: row.ifMatch, AssigneeID: row.to})
		got := decode[AssignedIssue](t, reply.Body).Issue
		if reply.Outcome != Done || reply.ETag != row.etag || !reflect.DeepEqual(got, w.get(issue.ID)) || (got.AssigneeID == nil) != (row.want == nil) || got.AssigneeID != nil && *got.AssigneeID != row.want {
			t.Errorf("%d: ETag %s, answer %s", i, reply.ETag, reply.Body)
		}
	}
	if n := len(w.events()); n != 3 {
		t.Errorf("%d events", n)
	}
	_, _, err := w.try(&w.ann, AssignIssue, &AssignIssueIn{ID: string(issue.ID), IfMatch: `"1"`, AssigneeID: Some("ann")})
	wantCode(t, err, CodePreconditionFailed)
	hidden := w.under("", w.secret, StatusTodo)
	_, _, err = w.try(&w.gus, AssignIssue, &AssignIssueIn{ID: string(hidden), AssigneeID: Some("gus")})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(&w.gus, AssignIssue, &AssignIssueIn{ID: "x", AssigneeID: Some("gus")})
	wantCode(t, err, CodeNotFound)
}
