package actors

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/processors"
)

// A query of single look-ups takes a turn when it needs a snapshot or makes a large answer. Few of them have built an answer that is
// not counted yet. A query that waits has no turn, and one whose record alone decides takes none.
func TestDo_LookUpsTakeTurnsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		parent := decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Parent"}).Body)
		child := decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Child", IssueFields: tracker.IssueFields{ParentID: tracker.Some(parent.ID)}}).Body)
		large := decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Large", IssueFields: tracker.IssueFields{Description: tracker.Some(strings.Repeat("x", 100<<10))}}).Body)
		queued, idle := y.dispatch("x"), y.dispatch("x")
		log := func() {
			y.must(tracker.LogActivities, &tracker.LogActivitiesIn{ID: queued, ActivityFields: tracker.ActivityFields{Message: tracker.Some("Done with a part.")}})
			synctest.Wait()
		}
		most := pagesAtOnce * processors.Count()
		ask := func(who tracker.Caller, op *tracker.Op, in any, charge func([]byte) error) error {
			req := request(y.workspace)
			req.Caller, req.Deadline, req.Charge = who, time.Now().Add(time.Hour), charge
			_, err := y.engine.Do(req, op, in)
			return err
		}
		turns := y.engine.pages
		for _, row := range []struct {
			name string
			op   *tracker.Op
			in   func() any
		}{
			{"poll", tracker.PollSession, func() any { return &tracker.PollSessionIn{ID: queued, Wait: 5} }},
			{"child issue", tracker.IssueByID, func() any { return &tracker.IssueByIDIn{ID: string(child.ID)} }},
			{"large issue", tracker.IssueByID, func() any { return &tracker.IssueByIDIn{ID: string(large.ID)} }},
			{"queued session", tracker.SessionByID, func() any { return &tracker.SessionByIDIn{ID: queued} }},
		} {
			charging, verdict, answered := make(chan int, most+3), make(chan error), make(chan error, most+3)
			for range most + 3 {
				go func() {
					judged := false
					answered <- ask(worker("w"), row.op, row.in(), func(body []byte) error {
						if judged { // a poll is counted while it grows, and at its end
							return nil
						}
						judged = true
						charging <- len(body)
						return <-verdict
					})
				}()
			}
			synctest.Wait()
			if row.op == tracker.PollSession {
				if len(charging) != 0 || turns.running != 0 {
					t.Errorf("polls that wait: %d answers, %d turns", len(charging), turns.running)
				}
				log()
			}
			if len(charging) != most {
				t.Fatalf("%s: %d answers are there and not counted, want %d", row.name, len(charging), most)
			}
			counted := 0
			count := func([]byte) error { counted++; return nil }
			if err := ask(worker("w"), tracker.IssueByID, &tracker.IssueByIDIn{ID: string(parent.ID)}, count); err != nil {
				t.Errorf("an issue whose record decides: %v", err)
			}
			if err := ask(tracker.System, tracker.PollSession, &tracker.PollSessionIn{ID: idle}, count); err != nil {
				t.Errorf("a poll without activities: %v", err)
			}
			if counted != 2 {
				t.Errorf("%d answers without a turn are counted, want 2", counted)
			}
			for range most + 2 {
				verdict <- nil
				if err := <-answered; err != nil {
					t.Errorf("%s: %v", row.name, err)
				}
			}
			verdict <- tracker.NotApplied("There is no memory for the answer.")
			wantOutcome(t, <-answered, "not_applied")
			synctest.Wait()
			if turns.running != 0 || len(turns.of) != 0 {
				t.Errorf("%s: at the end %d running, %d workspaces", row.name, turns.running, len(turns.of))
			}
		}
	})
}
