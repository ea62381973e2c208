package tracker

import (
	"strings"
	"testing"

	"switchyard/storage"
)

// automate sets the rules of a team.
func (w *issueFixture) automate(team TeamID, parent, children bool) {
	w.Helper()
	w.run(&w.ann, PatchTeam, &PatchTeamIn{ID: team, ParentAutoClose: Some(parent), SubIssueAutoClose: Some(children)})
}

// runDue runs due timers until there are none, and returns the number of those that
// close children.
func (w *issueFixture) runDue() (runs int) {
	w.Helper()
	for range 10_000 {
		v := storage.NewView(w.db, 1, storage.SystemID)
		due := firstDue(w, &v, w.now)
		if due == nil {
			return runs
		}
		if op := TimerOps[due.Kind]; op.Kind == Workflow {
			if err := w.flow(op, nil); err != nil {
				w.Fatal(err)
			}
			continue
		}
		w.run(&System, TimerOps[due.Kind], &TimerIn{Kind: due.Kind, Subject: due.Subject})
		if due.Kind == timerCloseChildren {
			runs++
		}
	}
	w.Fatal("the timers never come to rest")
	return runs
}

// under makes an issue below another; "" for none.
func (w *issueFixture) under(parent IssueID, team TeamID, status IssueStatus) IssueID {
	w.Helper()
	in := CreateIssueIn{IssueFields: IssueFields{TeamID: Some(team), Status: Some(status)}}
	if parent != "" {
		in.ParentID = Some(parent)
	}
	return w.create(in).ID
}

func setStatus(s IssueStatus) IssuePatch {
	return IssuePatch{IssueFields: IssueFields{Status: Some(s)}}
}

func setParent(id IssueID) IssuePatch {
	return IssuePatch{IssueFields: IssueFields{ParentID: Opt[IssueID]{Set: true, Null: id == "", Value: id}}}
}

func (w *issueFixture) remove(id IssueID) {
	w.Helper()
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(id)})
}

func TestAutomation_Parent(t *testing.T) {
	t.Parallel()
	type family struct{ top, parent, a, b, other IssueID }
	for _, row := range []struct {
		name string
		// parent has the children a, open, and b, done; other is a childless issue.
		do   func(w *issueFixture, f *family)
		want IssueStatus // of the parent
	}{
		{"the last open child is done", func(w *issueFixture, f *family) { w.patch(f.a, setStatus(StatusDone)) }, StatusDone},
		{"the last open child is canceled", func(w *issueFixture, f *family) { w.patch(f.a, setStatus(StatusCanceled)) }, StatusDone},
		{"in a batch", func(w *issueFixture, f *family) {
			w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(f.a), string(f.b)}, Patch: setStatus(StatusCanceled)})
		}, StatusDone},
		{"an open child is left", func(w *issueFixture, f *family) {
			w.under(f.parent, w.core, StatusTriage)
			w.patch(f.a, setStatus(StatusDone))
		}, StatusTodo},
		{"an open child that the caller can't see", func(w *issueFixture, f *family) {
			w.under(f.parent, w.secret, StatusTodo)
			w.run(&w.gus, PatchIssue, patchIn(f.a, "", setStatus(StatusDone)))
		}, StatusTodo},
		{"another status that is open", func(w *issueFixture, f *family) { w.patch(f.a, setStatus(StatusInProgress)) }, StatusTodo},
		{"the open child is deleted", func(w *issueFixture, f *family) { w.remove(f.a) }, StatusDone},
		{"both are deleted, the closed one first", func(w *issueFixture, f *family) { w.remove(f.b); w.remove(f.a) }, StatusTodo},
		{"the closed child is deleted", func(w *issueFixture, f *family) { w.remove(f.b) }, StatusTodo},
		{"the open child gets another parent", func(w *issueFixture, f *family) { w.patch(f.a, setParent(f.other)) }, StatusDone},
		{"the open child gets no parent", func(w *issueFixture, f *family) { w.patch(f.a, setParent("")) }, StatusDone},
		{"the open child is closed and leaves", func(w *issueFixture, f *family) {
			p := setParent(f.other)
			p.Status = Some(StatusDone)
			w.patch(f.a, p)
		}, StatusDone},
		{"a closed child is created", func(w *issueFixture, f *family) {
			w.under(f.parent, w.core, StatusDone)
		}, StatusTodo},
		{"a closed child comes to one whose children are closed", func(w *issueFixture, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo)) // reopened
			if got := w.get(f.parent).Status; got != StatusTodo {
				w.Errorf("reopened: %s", got)
			}
			w.patch(f.other, setStatus(StatusCanceled))
			w.patch(f.other, setParent(f.parent))
		}, StatusDone},
		{"a closed child is closed otherwise", func(w *issueFixture, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo))
			w.patch(f.a, setStatus(StatusCanceled))
		}, StatusTodo},
		{"a closed child leaves one that was reopened", func(w *issueFixture, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo))
			w.patch(f.b, setParent(""))
		}, StatusTodo},
		{"a parent that is canceled stays it", func(w *issueFixture, f *family) {
			w.patch(f.parent, setStatus(StatusCanceled))
			w.patch(f.a, setStatus(StatusDone))
		}, StatusCanceled},
		{"the setting of the child's team", func(w *issueFixture, f *family) {
			w.automate(w.web, false, false)
			w.automate(w.core, true, true)
			w.patch(f.a, setStatus(StatusDone))
		}, StatusTodo},
		{"a setting does not act backwards", func(w *issueFixture, f *family) {
			w.automate(w.web, false, false)
			w.patch(f.a, setStatus(StatusDone))
			w.automate(w.web, true, true)
		}, StatusTodo},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			w.automate(w.web, true, false)
			f := &family{top: w.under("", w.web, StatusInProgress)}
			f.parent = w.under(f.top, w.web, StatusTodo)
			f.a, f.b, f.other = w.under(f.parent, w.core, StatusTodo), w.under(f.parent, w.core, StatusDone), w.under("", w.core, StatusTodo)
			row.do(w, f)
			if got := w.get(f.parent).Status; got != row.want {
				t.Errorf("the parent is %s, want %s", got, row.want)
			}
			// The rule continues with the parent's parent.
			if got := w.get(f.top).Status; row.want.Closed() && got != StatusDone {
				t.Errorf("the topmost is %s", got)
			}
			w.verify()
		})
	}
}

func TestAutomation_FirstChildCreatedClosed(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.web, true, false)
	top := w.under("", w.web, StatusTodo)
	before := len(w.events())
	w.under(top, w.core, StatusCanceled)
	if got := w.get(top); got.Status != StatusDone || got.Resolution != nil {
		t.Errorf("the parent is %+v", got)
	}
	events := w.events()[before:]
	if len(events) != 2 || events[0].Type != "issue.created" || events[1].Type != "issue.updated" || events[1].Changes["status"].To != "done" {
		t.Errorf("events %+v", events)
	}
}

func TestAutomation_Children(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.web, false, true)
	top := w.under("", w.web, StatusTodo)
	open, done, hidden := w.under(top, w.web, StatusTriage), w.under(top, w.web, StatusDone), w.under(top, w.secret, StatusTodo)
	below, belowHidden := w.under(open, w.core, StatusTodo), w.under(hidden, w.core, StatusTodo)
	before := len(w.events())
	reply := w.run(&w.gus, PatchIssue, patchIn(top, "", setStatus(StatusCanceled)))
	if got := decode[Issue](t, reply.Body); got.ID != top || got.Status != StatusCanceled || reply.ETag != `"2"` || strings.Contains(string(reply.Body), string(hidden)) {
		t.Errorf("ETag %s, answer %s", reply.ETag, reply.Body)
	}
	for id, want := range map[IssueID]IssueStatus{
		open: StatusCanceled, done: StatusDone, hidden: StatusCanceled, below: StatusCanceled, belowHidden: StatusTodo, // SEC does not have the rule
	} {
		if got := w.get(id).Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	events := w.events()[before:]
	if len(events) != 4 || events[0].Data.ID != top {
		t.Errorf("events %+v", events)
	}
	// An issue that is added to a closed parent stays open, and so does a reopened one.
	late := w.under(top, w.web, StatusTodo)
	w.patch(open, setStatus(StatusTodo))
	w.patch(top, setStatus(StatusDone)) // it was closed before
	for _, id := range []IssueID{late, open} {
		if got := w.get(id).Status; got != StatusTodo {
			t.Errorf("%s is %s", id, got)
		}
	}
	w.verify()
}

// A parent whose deletion detaches its children in several batches is not made done in
// between.
func TestAutomation_SparesWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	w.under(top, w.core, StatusDone)
	parent := w.under(top, w.core, StatusTodo)
	for range maxBudgetRecords { // the oldest ones are detached last
		w.under(parent, w.core, StatusDone)
	}
	w.patch(parent, setStatus(StatusTodo))
	for range 3 {
		w.under(parent, w.core, StatusTodo)
	}
	version := w.run(&w.ann, PatchIssue, patchIn(parent, "", IssuePatch{Title: Some("condemned")})).ETag
	before := len(w.events())
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(parent), IfMatch: version})
	if err != nil || times != 2 {
		t.Fatalf("%d runs, %v", times, err)
	}
	for _, e := range w.events()[before:] {
		if e.Type == "issue.updated" && e.Data.ID == parent {
			t.Errorf("the condemned was changed: %+v", e)
		}
	}
	if got := w.get(top).Status; got != StatusDone {
		t.Errorf("the parent of what was deleted is %s, want done", got)
	}
	w.verify()
}

func TestAutomation_TriageAssignee(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.run(&w.ann, PatchTeam, &PatchTeamIn{ID: w.web, TriageAssigneeID: Some("tess")})
	null := Opt[string]{Set: true, Null: true}
	for _, row := range []struct {
		name   string
		create IssueFields
		patch  *IssueFields
		want   string
	}{
		{"created in triage", IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage)}, nil, "tess"},
		{"created in triage, explicitly unassigned", IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage), AssigneeID: null}, nil, "tess"},
		{"created in triage with an assignee", IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage), AssigneeID: Some("bob")}, nil, "bob"},
		{"created elsewhere", IssueFields{TeamID: Some(w.web)}, nil, ""},
		{"another team", IssueFields{TeamID: Some(w.core), Status: Some(StatusTriage)}, nil, ""},
		{"put into triage", IssueFields{TeamID: Some(w.web)}, &IssueFields{Status: Some(StatusTriage)}, "tess"},
		{"put into triage, assigned", IssueFields{TeamID: Some(w.web), AssigneeID: Some("bob")}, &IssueFields{Status: Some(StatusTriage)}, "bob"},
		{"put into triage and assigned", IssueFields{TeamID: Some(w.web)}, &IssueFields{Status: Some(StatusTriage), AssigneeID: Some("bob")}, "bob"},
		{"put into triage and unassigned", IssueFields{TeamID: Some(w.web), AssigneeID: Some("bob")}, &IssueFields{Status: Some(StatusTriage), AssigneeID: null}, "tess"},
		{"unassigned while in triage", IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage)}, &IssueFields{AssigneeID: null}, ""},
		{"in triage as before", IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage)}, &IssueFields{Status: Some(StatusTriage), AssigneeID: null}, ""},
		{"moved while in triage", IssueFields{TeamID: Some(w.core), Status: Some(StatusTriage)}, &IssueFields{TeamID: Some(w.web)}, ""},
		{"moved into triage", IssueFields{TeamID: Some(w.core)}, &IssueFields{TeamID: Some(w.web), Status: Some(StatusTriage)}, "tess"},
		{"moved out of the team into triage", IssueFields{TeamID: Some(w.web)}, &IssueFields{TeamID: Some(w.core), Status: Some(StatusTriage)}, ""},
	} {
		issue := w.create(CreateIssueIn{IssueFields: row.create}).Issue
		if row.patch != nil {
			reply := w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(issue.ID)}, Patch: IssuePatch{IssueFields: *row.patch}})
			issue = decode[IssueList](t, reply.Body).Issues[0]
		}
		got := ""
		if issue.AssigneeID != nil {
			got = *issue.AssigneeID
		}
		if stored := w.get(issue.ID); got != row.want || (stored.AssigneeID == nil) != (issue.AssigneeID == nil) {
			t.Errorf("%s: assigned to %q, want %q", row.name, got, row.want)
		}
	}
	w.verify()
}

func TestAutomation_TimerOfNonsense(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for _, subject := range []string{"", "x", "a b c d", w.workspace.String() + " x user YQ", w.workspace.String() + " " + w.workspace.String() + " user ?"} {
		for _, kind := range []string{timerCloseChildren, timerCloseParent} {
			if _, _, err := w.try(&System, TimerOps[kind], &TimerIn{Kind: kind, Subject: subject}); err == nil {
				t.Errorf("%s takes %q", kind, subject)
			}
		}
	}
}
