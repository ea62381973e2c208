package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/storage"
)

// A batch that closes parent and child changes each once, in any order.
func TestAutomation_BatchChangesEachOnce(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		w := newIssueFixture(t)
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

// The answer of a batch shows the final state of its issues.
func TestAutomation_BatchAnswersWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, false)
	other, parent := w.under("", w.core, StatusTodo), w.under("", w.core, StatusTodo)
	child := w.under(parent, w.core, StatusTodo)
	w.under(parent, w.core, StatusDone)
	// The child moves away: the parent, which moves in the same batch, has closed
	// children only.
	reply := w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(parent), string(child)}, Patch: setParent(other)})
	got := decode[IssueList](t, reply.Body).Issues
	if len(got) != 2 || got[0].Status != StatusDone || *got[0].ParentID != other || got[1].Status != StatusTodo || w.get(parent).Status != StatusDone {
		t.Errorf("answer %s", reply.Body)
	}
	if w.get(other).Status != StatusTodo {
		t.Error("a parent with an open child became done")
	}
}

// Timers continue work that is too much for one batch, in the name of the original
// actor.
func TestAutomation_ManyChildrenTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	child := w.under(top, w.core, StatusTodo)
	for range 2*maxAutoClosed + 7 {
		w.under(child, w.core, StatusTodo)
	}
	odd := w.gus
	odd.ID = "gus\x01 ½" // an id may contain anything except NUL
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
	// Meanwhile a child is created, a closed one is reopened, and one is deleted.
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

func (w *issueFixture) actors() (actors []string) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
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

// Reopening a parent stops the closing of its children.
func TestAutomation_ReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, false, true)
	w.buffer.closeLimit = 2
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

// Large issues use up the limit of a batch by their size.
func TestAutomation_LargeChildrenTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, true)
	top := w.under("", w.core, StatusTodo)
	large := strings.Repeat("\u2028", 262_144) // six bytes each in the stored form
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

// A chain of parents of any allowed length is closed to its end.
func TestAutomation_LongChains(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
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
