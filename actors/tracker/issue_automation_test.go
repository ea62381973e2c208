package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/storage"
)

// automate sets the rules of a team.
func (w *issueWorld) automate(team TeamID, parent, children bool) {
	w.Helper()
	w.run(&w.ann, PatchTeam, &PatchTeamIn{ID: team, ParentAutoClose: Some(parent), SubIssueAutoClose: Some(children)})
}

// runDue runs the timers that are due until none is, and tells how many of those that
// close children there were.
func (w *issueWorld) runDue() (runs int) {
	w.Helper()
	for range 10_000 {
		v := storage.NewView(w.db, 1, storage.SystemID)
		due, _, err := ListDue(&v, w.now, 1)
		if err != nil {
			w.Fatal(err)
		}
		if len(due) == 0 {
			return runs
		}
		w.run(&System, TimerOps[due[0].Kind], &TimerIn{Kind: due[0].Kind, Subject: due[0].Subject})
		if due[0].Kind == timerCloseChildren {
			runs++
		}
	}
	w.Fatal("the timers never come to rest")
	return runs
}

// under makes an issue below another, which may be "".
func (w *issueWorld) under(parent IssueID, team TeamID, status IssueStatus) IssueID {
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

func (w *issueWorld) remove(id IssueID) {
	w.Helper()
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(id)})
}

func TestAutomation_Parent(t *testing.T) {
	t.Parallel()
	type family struct{ top, parent, a, b, other IssueID }
	for _, row := range []struct {
		name string
		// parent has the children a, open, and b, done; other is a childless issue.
		do   func(w *issueWorld, f *family)
		want IssueStatus // parent's
	}{
		{"the last open child is done", func(w *issueWorld, f *family) { w.patch(f.a, setStatus(StatusDone)) }, StatusDone},
		{"the last open child is canceled", func(w *issueWorld, f *family) { w.patch(f.a, setStatus(StatusCanceled)) }, StatusDone},
		{"in a batch", func(w *issueWorld, f *family) {
			w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(f.a), string(f.b)}, Patch: setStatus(StatusCanceled)})
		}, StatusDone},
		{"an open child is left", func(w *issueWorld, f *family) {
			w.under(f.parent, w.core, StatusTriage)
			w.patch(f.a, setStatus(StatusDone))
		}, StatusTodo},
		{"an open child that the caller can't see", func(w *issueWorld, f *family) {
			w.under(f.parent, w.secret, StatusTodo)
			w.run(&w.gus, PatchIssue, patchIn(f.a, "", setStatus(StatusDone)))
		}, StatusTodo},
		{"another status that is open", func(w *issueWorld, f *family) { w.patch(f.a, setStatus(StatusInProgress)) }, StatusTodo},
		{"the open child is deleted", func(w *issueWorld, f *family) { w.remove(f.a) }, StatusDone},
		{"both are deleted, the closed one first", func(w *issueWorld, f *family) { w.remove(f.b); w.remove(f.a) }, StatusTodo},
		{"the closed child is deleted", func(w *issueWorld, f *family) { w.remove(f.b) }, StatusTodo},
		{"the open child gets another parent", func(w *issueWorld, f *family) { w.patch(f.a, setParent(f.other)) }, StatusDone},
		{"the open child gets no parent", func(w *issueWorld, f *family) { w.patch(f.a, setParent("")) }, StatusDone},
		{"the open child is closed and leaves", func(w *issueWorld, f *family) {
			p := setParent(f.other)
			p.Status = Some(StatusDone)
			w.patch(f.a, p)
		}, StatusDone},
		{"a closed child is created", func(w *issueWorld, f *family) {
			w.under(f.parent, w.core, StatusDone)
		}, StatusTodo},
		{"a closed child comes to one whose children are closed", func(w *issueWorld, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo)) // reopened, and left so
			if got := w.get(f.parent).Status; got != StatusTodo {
				w.Errorf("reopened: %s", got)
			}
			w.patch(f.other, setStatus(StatusCanceled))
			w.patch(f.other, setParent(f.parent))
		}, StatusDone},
		{"a closed child is closed otherwise", func(w *issueWorld, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo))
			w.patch(f.a, setStatus(StatusCanceled))
		}, StatusTodo},
		{"a closed child leaves one that was reopened", func(w *issueWorld, f *family) {
			w.patch(f.a, setStatus(StatusDone))
			w.patch(f.parent, setStatus(StatusTodo))
			w.patch(f.b, setParent(""))
		}, StatusTodo},
		{"a parent that is canceled stays it", func(w *issueWorld, f *family) {
			w.patch(f.parent, setStatus(StatusCanceled))
			w.patch(f.a, setStatus(StatusDone))
		}, StatusCanceled},
		{"the setting of the child's team", func(w *issueWorld, f *family) {
			w.automate(w.web, false, false)
			w.automate(w.core, true, true)
			w.patch(f.a, setStatus(StatusDone))
		}, StatusTodo},
		{"a setting does not act backwards", func(w *issueWorld, f *family) {
			w.automate(w.web, false, false)
			w.patch(f.a, setStatus(StatusDone))
			w.automate(w.web, true, true)
		}, StatusTodo},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newIssueWorld(t)
			w.automate(w.web, true, false)
			f := &family{top: w.under("", w.web, StatusInProgress)}
			f.parent = w.under(f.top, w.web, StatusTodo)
			f.a, f.b, f.other = w.under(f.parent, w.core, StatusTodo), w.under(f.parent, w.core, StatusDone), w.under("", w.core, StatusTodo)
			row.do(w, f)
			if got := w.get(f.parent).Status; got != row.want {
				t.Errorf("the parent is %s, want %s", got, row.want)
			}
			// The rule climbs.
			if got := w.get(f.top).Status; row.want.Closed() && got != StatusDone {
				t.Errorf("the topmost is %s", got)
			}
			w.verify()
		})
	}
}

func TestAutomation_FirstChildCreatedClosed(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
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
	w := newIssueWorld(t)
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
		open: StatusCanceled, done: StatusDone, hidden: StatusCanceled, below: StatusCanceled, belowHidden: StatusTodo, // SEC has no such rule
	} {
		if got := w.get(id).Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	events := w.events()[before:]
	if len(events) != 4 || events[0].Data.ID != top {
		t.Errorf("events %+v", events)
	}
	// What comes to a closed parent stays open, and so does what is reopened.
	late := w.under(top, w.web, StatusTodo)
	w.patch(open, setStatus(StatusTodo))
	w.patch(top, setStatus(StatusDone)) // closed before, closed now
	for _, id := range []IssueID{late, open} {
		if got := w.get(id).Status; got != StatusTodo {
			t.Errorf("%s is %s", id, got)
		}
	}
	w.verify()
}

// A batch that closes parent and child changes each once, whatever the order.
func TestAutomation_BatchChangesEachOnce(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		w := newIssueWorld(t)
		w.automate(w.core, true, true)
		top := w.under("", w.core, StatusTodo)
		child := w.under(top, w.core, StatusTodo)
		leaf := w.under(child, w.core, StatusTodo)
		ids := []string{string(top), string(child), string(leaf)}
		if reverse {
			slices.Reverse(ids)
		}
		before := len(w.events())
		w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: setStatus(StatusCanceled)})
		for _, e := range w.events()[before:] {
			if e.Data.Status != StatusCanceled {
				t.Errorf("%s became %s", e.Data.ID, e.Data.Status)
			}
		}
		if n := len(w.events()) - before; n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	}
}

// The answer of a batch shows its issues as they are in the end.
func TestAutomation_BatchAnswersWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, true, false)
	other, parent := w.under("", w.core, StatusTodo), w.under("", w.core, StatusTodo)
	child := w.under(parent, w.core, StatusTodo)
	w.under(parent, w.core, StatusDone)
	// The child leaves: the parent, which goes the same way, has closed children only.
	reply := w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(parent), string(child)}, Patch: setParent(other)})
	got := decode[IssueList](t, reply.Body).Issues
	if len(got) != 2 || got[0].Status != StatusDone || *got[0].ParentID != other || got[1].Status != StatusTodo || w.get(parent).Status != StatusDone {
		t.Errorf("answer %s", reply.Body)
	}
	if w.get(other).Status != StatusTodo {
		t.Error("a parent with an open child became done")
	}
}

// A parent that loses its children to its own deletion in several batches is not
// made done between them.
func TestAutomation_SparesWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	w.under(top, w.core, StatusDone)
	parent := w.under(top, w.core, StatusTodo)
	for range maxPortion { // the oldest, which are detached last
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

// What is too much for one batch is gone on with by timers, in the name of the one
// who began it.
func TestAutomation_ManyChildrenTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	child := w.under(top, w.core, StatusTodo)
	for range 2*maxAutoClosed + 7 {
		w.under(child, w.core, StatusTodo)
	}
	odd := w.gus
	odd.ID = "gus\x01 ½" // an id may hold anything but NUL
	reply, times, err := w.try(&odd, PatchIssue, patchIn(child, "", setStatus(StatusCanceled)))
	if err != nil || times != 1 || decode[Issue](t, reply.Body).Status != StatusCanceled {
		t.Fatalf("%d runs, %v", times, err)
	}
	open := func() int {
		v := storage.NewView(w.db, 1, w.workspace)
		n := 0
		err := v.Rows(issueByOpenChild, nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := open(); n != maxAutoClosed+7 {
		t.Errorf("%d children are left open", n)
	}
	if got := w.get(top).Status; got != StatusTodo {
		t.Errorf("the topmost is %s before the children below it are done with", got)
	}
	w.verify()
	// Meanwhile one comes anew, one of the closed is reopened, one goes.
	ids := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{ParentID: Some(string(child))}}).Issues
	late, again := w.under(child, w.core, StatusTodo), ids[0].ID
	w.patch(again, setStatus(StatusTodo))
	if runs := w.runDue(); runs != 2 || open() != 2 {
		t.Errorf("%d runs left %d open", runs, open())
	}
	for _, id := range []IssueID{late, again} {
		if got := w.get(id).Status; got != StatusTodo {
			t.Errorf("%s was %s", id, got)
		}
	}
	closed := 0
	for _, e := range w.actors() {
		if e == "user gus\x01 ½" {
			closed++
		}
	}
	if want := 2*maxAutoClosed + 7 + 2; closed != want {
		t.Errorf("%d events in the name of the caller, want %d", closed, want)
	}
	w.verify()
}

func (w *issueWorld) actors() (actors []string) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(_, value []byte) (bool, error) {
		rec, err := storage.ParseRecord(value)
		if err != nil {
			return false, err
		}
		e := decode[Event](w, rec.JSON())
		actors = append(actors, fmt.Sprint(e.Actor.Type, " ", e.Actor.ID))
		return true, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return actors
}

// Reopening a parent ends what its closing began.
func TestAutomation_ReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, false, true)
	w.ledger.share = 2
	for _, ends := range []func(IssueID){
		func(id IssueID) { w.patch(id, setStatus(StatusTodo)) },
		func(id IssueID) { w.remove(id) },
	} {
		top := w.under("", w.core, StatusTodo)
		var children []IssueID
		for range 5 {
			children = append(children, w.under(top, w.core, StatusTodo))
		}
		w.patch(top, setStatus(StatusDone))
		ends(top)
		if runs := w.runDue(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
		for i, id := range children {
			if got := w.get(id).Status; (got == StatusDone) != (i >= 3) {
				t.Errorf("child %d is %s", i, got)
			}
		}
		w.verify()
	}
}

// Issues that are large take up the share of a batch by their size.
func TestAutomation_LargeChildrenTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	large := strings.Repeat("\u2028", 262_144) // six bytes each where it is stored
	for range 6 {
		id := w.under(top, w.core, StatusTodo)
		w.patch(id, IssuePatch{IssueFields: IssueFields{Description: Some(large)}})
	}
	if _, times, err := w.try(&w.ann, PatchIssue, patchIn(top, "", IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone), Description: Some(large)}})); err != nil || times != 1 {
		t.Fatalf("%d runs, %v", times, err)
	}
	if runs := w.runDue(); runs < 2 {
		t.Errorf("%d runs", runs)
	}
	left := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{View: Some("backlog")}}).Issues
	if len(left) != 0 {
		t.Errorf("%d are open", len(left))
	}
	w.verify()
}

// A chain of parents is climbed to its end, as long as one may be.
func TestAutomation_LongChains(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	w.automate(w.core, true, true)
	var chain []IssueID
	for i := range maxParentChain {
		parent := IssueID("")
		if i > 0 {
			parent = chain[i-1]
		}
		chain = append(chain, w.under(parent, w.core, StatusTodo))
	}
	before := len(w.events())
	w.patch(chain[maxParentChain-1], setStatus(StatusCanceled))
	if w.get(chain[0]).Status != StatusDone || len(w.events())-before != maxParentChain {
		t.Errorf("the topmost is %s after %d events", w.get(chain[0]).Status, len(w.events())-before)
	}
	w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: texts(chain), Patch: setStatus(StatusTodo)})
	w.patch(chain[0], setStatus(StatusCanceled))
	if got := w.get(chain[maxParentChain-1]).Status; got != StatusCanceled {
		t.Errorf("the lowest is %s", got)
	}
	w.verify()
}

func texts(ids []IssueID) (all []string) {
	for _, id := range ids {
		all = append(all, string(id))
	}
	return all
}

func TestAutomation_TriageAssignee(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
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
	w := newIssueWorld(t)
	for _, subject := range []string{"", "x", "a b c d", w.workspace.String() + " x user YQ", w.workspace.String() + " " + w.workspace.String() + " user ?"} {
		for _, kind := range []string{timerCloseChildren, timerCloseParent} {
			if _, _, err := w.try(&System, TimerOps[kind], &TimerIn{Kind: kind, Subject: subject}); err == nil {
				t.Errorf("%s takes %q", kind, subject)
			}
		}
	}
}
