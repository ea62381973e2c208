package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// A timer emits the events for which one command has no room, once for each issue, in the name of the
// actor that closed the blocker.
func TestBlocked_ManyAreReleased(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	tops := w.titled("Top", "Other top")
	var ids []IssueID
	for n := range maxUnblocked + 10 {
		ids = append(ids, w.titled("Waits")...)
		w.relate(tops[n%2], RelationBlocks, ids[n])
	}
	again := w.titled("Again")[0]
	n := len(w.events())
	w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(tops[0]), string(tops[1])}, Patch: setStatus(StatusDone)})
	if first, _ := w.told(n, "issue.ready"); len(first) != maxUnblocked {
		t.Errorf("the first batch tells of %d issues", len(first))
	}
	for _, id := range ids {
		if w.openBlockers(id) != 0 {
			t.Fatal("an issue is still blocked")
		}
	}
	w.verify()
	w.relate(again, RelationBlocks, ids[maxUnblocked+9]) // which ends what was left to do for it
	w.remove(ids[maxUnblocked+7])
	w.now = w.now.Add(time.Second)
	w.runDue()
	if got, _ := w.told(n, "issue.ready"); len(got) != len(ids)-2 {
		t.Errorf("%d issues are told of", len(got))
	}
	v := storage.NewView(w.db, 1, w.workspace)
	if left, err := v.Has(releaseTable, nil); err != nil || left {
		t.Errorf("rows are left: %t, %v", left, err)
	}
	events := w.events()
	if last := events[len(events)-1]; last.Type != "issue.ready" || last.Actor.ID != "ann" {
		t.Errorf("the last event is %s of %s", last.Type, last.Actor.ID)
	}
	w.verify()
}

// An issue blocks at most maxRelations others. The batch that closes it releases all of them, with the
// sessions that wait for them.
func TestBlocked_AllOfOneIssueInItsBatch(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	top := w.titled("Top")[0]
	items := make([]string, maxRelations)
	for n := range items {
		items[n] = fmt.Sprintf(`{"title": "Number %d", "description": %q, "relations": [{"type": "blocked_by", "issueId": %q}], "dispatch": {"whenReady": true}}`, n, strings.Repeat("x", 4<<10), top)
	}
	w.bulk(`{"items": [` + strings.Join(items, ",") + `]}`)
	n := len(w.events())
	w.patch(top, setStatus(StatusDone))
	if ready, _ := w.told(n, "issue.ready"); len(ready) != maxRelations {
		t.Errorf("%d issues are ready", len(ready))
	}
	if moved, _ := w.told(n, "session.updated"); len(moved) != maxRelations {
		t.Errorf("%d sessions are moved", len(moved))
	}
	w.verify()
}

// A blocker of many large issues can be opened again: a timer tells of those that the events of one
// batch leave out, in the name of the actor.
func TestBlocked_ManyLargeIssuesInSteps(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	top := w.titled("Top")[0]
	for range 4 {
		items := make([]string, maxRelations/4)
		for n := range items {
			items[n] = fmt.Sprintf(`{"title": "Number %d", "description": %q, "relations": [{"type": "blocked_by", "issueId": %q}]}`, n, strings.Repeat("x", 60<<10), top)
		}
		w.bulk(`{"items": [` + strings.Join(items, ",") + `]}`)
	}
	w.patch(top, setStatus(StatusDone))
	w.finishRelease()
	n := len(w.events())
	w.patch(top, setStatus(StatusTodo))
	if blocked, _ := w.told(n, "issue.blocked"); len(blocked) == 0 || len(blocked) == maxRelations {
		t.Errorf("the first batch tells of %d issues", len(blocked))
	}
	w.verify()
	w.finishRelease()
	if blocked, _ := w.told(n, "issue.blocked"); len(blocked) != maxRelations {
		t.Errorf("in the end %d issues are told of", len(blocked))
	}
	for _, e := range w.events()[n:] {
		if e.Actor.ID != w.ann.ID {
			t.Fatalf("%s is told as of %s", e.Type, e.Actor.ID)
		}
	}
	w.verify()
}

// Where several sessions wait for each issue, a batch releases fewer issues, each with all its
// sessions. One timer does the rest.
func TestBlocked_ManySessionsInSteps(t *testing.T) {
	t.Parallel()
	const each = 3
	w := newIssueFixture(t)
	top := w.blockMany(each, 0)
	n := len(w.events())
	w.patch(top, setStatus(StatusDone))
	ready, _ := w.told(n, "issue.ready")
	moved, _ := w.told(n, "session.updated")
	if want := (maxUnblockedSessions + each - 1) / each; len(ready) != want || len(moved) != want*each {
		t.Errorf("the first batch releases %d issues and %d sessions", len(ready), len(moved))
	}
	w.now = w.now.Add(time.Second)
	v := storage.NewView(w.db, 1, storage.SystemID)
	var due []DueTimer
	if _, err := ReadDue(&v, nil, w.now, func(t DueTimer) bool {
		due = append(due, t)
		return true
	}); err != nil || slices.ContainsFunc(due, func(d DueTimer) bool { return d.Kind == timerWhenReady }) {
		t.Errorf("the rest has timers of its own: %v, %v", due, err)
	}
	w.finishRelease()
	ready, _ = w.told(n, "issue.ready")
	moved, _ = w.told(n, "session.updated")
	if len(ready) != maxRelations || len(moved) != maxRelations*each {
		t.Errorf("in the end %d issues and %d sessions are released", len(ready), len(moved))
	}
	w.verify()
}
