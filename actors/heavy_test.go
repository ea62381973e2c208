package actors

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/processors"
)

type heavyIn struct {
	Number int
	Ran    chan int
	Leave  chan struct{}
}

// heavyQuery tells that it runs, and waits.
var heavyQuery = tracker.NewQuery[heavyIn, int]("HeavyQuery", "", tracker.Needs{Level: tracker.Read}, func(_ *tracker.View, in *heavyIn) (tracker.Reply, error) {
	in.Ran <- in.Number
	<-in.Leave
	return tracker.Reply{}, nil
}, tracker.TakesATurn)

// TestDo_HeavyQueriesTakeTurns asks for more heavy queries than there are processors.
func TestDo_HeavyQueriesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		w := workspaceNumber(1)
		b.mustCount(w, 1)
		most := processors.Count()
		in := heavyIn{Ran: make(chan int, most+4), Leave: make(chan struct{})}
		answered := make(chan error, most+4)
		ask := func(number int, deadline time.Duration) {
			req := request(w)
			req.Deadline = time.Now().Add(deadline)
			one := in
			one.Number = number
			go func() {
				_, err := b.engine.Do(req, heavyQuery, &one)
				answered <- err
			}()
			synctest.Wait()
		}
		for i := range most {
			ask(i, time.Hour)
		}
		ask(most, time.Second) // whose time will be up
		for i := range 3 {
			ask(most+1+i, time.Hour)
		}
		if len(in.Ran) != most {
			t.Fatalf("%d heavy queries run at a time, want %d", len(in.Ran), most)
		}
		if _, err := b.do(w, readCount, &tracker.None{}); err != nil {
			t.Errorf("another query: %v", err)
		}
		wantOutcome(t, <-answered, "not_applied")
		for range most + 3 {
			in.Leave <- struct{}{}
			if err := <-answered; err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		close(in.Ran)
		var order []int
		for n := range in.Ran {
			order = append(order, n)
		}
		if want := []int{most + 1, most + 2, most + 3}; !slices.Equal(order[most:], want) {
			t.Errorf("the order is %v, want %v at its end", order, want)
		}
	})
}

// TestDo_HeavyQueriesTakeTurnsByWorkspace has one workspace ask for a hundred heavy queries, and
// others for one after that: each of these runs next.
func TestDo_HeavyQueriesTakeTurnsByWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		for n := 1; n <= 3; n++ {
			b.mustCount(workspaceNumber(n), 1)
		}
		const backlog = 100
		most := processors.Count()
		in := heavyIn{Ran: make(chan int, backlog+2), Leave: make(chan struct{})}
		answered := make(chan error, backlog+2)
		ask := func(workspace int) {
			req, one := request(workspaceNumber(workspace)), in
			req.Deadline, one.Number = time.Now().Add(time.Hour), workspace
			go func() {
				_, err := b.engine.Do(req, heavyQuery, &one)
				answered <- err
			}()
			synctest.Wait()
		}
		for range backlog {
			ask(1)
		}
		if len(in.Ran) != most {
			t.Fatalf("%d heavy queries of a workspace run at a time, want %d", len(in.Ran), most)
		}
		for range most {
			<-in.Ran
		}
		ask(2)
		ask(3)
		for n := range backlog + 2 {
			in.Leave <- struct{}{}
			synctest.Wait()
			if err := <-answered; err != nil {
				t.Error(err)
			}
			if n < 2 {
				if got, want := <-in.Ran, n+2; got != want {
					t.Errorf("after the end of %d queries one of workspace %d runs next, want %d", n+1, got, want)
				}
			}
		}
		if turns := b.engine.heavy; turns.running != 0 || len(turns.of) != 0 || turns.order.Len() != 0 {
			t.Errorf("at the end: %d running, %d workspaces, %d of them waiting", turns.running, len(turns.of), turns.order.Len())
		}
	})
}

// An event wakes all requests that wait for a page of the log. Few of them have built an answer that
// is not counted yet. Neither searches nor steps of the service itself wait for them.
func TestDo_PagesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		reader := worker("a")
		reader.Permissions, _, _ = tracker.ParsePermissions("read")
		most := pagesAtOnce * processors.Count()
		charging, verdict, answered := make(chan int, most+3), make(chan error), make(chan error, most+3)
		for range most + 3 {
			req := request(y.workspace)
			req.Caller, req.Deadline = reader, time.Now().Add(time.Hour)
			req.Charge = func(body []byte) error {
				charging <- len(body)
				return <-verdict
			}
			go func() {
				_, err := y.engine.Do(req, tracker.ListEvents, &tracker.ListEventsIn{Wait: 20})
				answered <- err
			}()
		}
		synctest.Wait()
		if len(charging) != 0 {
			t.Error("the memory of an answer was counted that is not there yet")
		}
		y.create(1)
		synctest.Wait()
		if len(charging) != most {
			t.Fatalf("%d answers are there and not counted, want %d", len(charging), most)
		}
		if _, err := y.engine.Do(request(y.workspace), heavyWalk, &heavyWalkIn{}); err != nil {
			t.Errorf("a heavy query: %v", err)
		}
		if _, err := y.engine.Do(request(y.workspace), tracker.ListTeams, &tracker.PageIn{Limit: 1}); err != nil {
			t.Errorf("a page whose memory is not counted: %v", err)
		}
		for range most + 2 {
			verdict <- nil
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		verdict <- tracker.NotApplied("There is no memory for the answer.")
		wantOutcome(t, <-answered, "not_applied")
		if turns := y.engine.pages; turns.running != 0 || len(turns.of) != 0 {
			t.Errorf("at the end: %d running, %d workspaces", turns.running, len(turns.of))
		}
	})
}

type heavyWalkIn struct{ Rows int }

// heavyWalk reads rows, each of which takes a millisecond.
var heavyWalk = tracker.NewQuery[heavyWalkIn, int]("HeavyWalk", "", tracker.Needs{Level: tracker.Read}, func(v *tracker.View, in *heavyWalkIn) (tracker.Reply, error) {
	for range in.Rows {
		if err := v.Rows(testTable, []byte("count"), nil, func(_, _ []byte) (bool, error) {
			pass(time.Millisecond)
			return true, nil
		}); err != nil {
			return tracker.Reply{}, err
		}
	}
	return tracker.Reply{}, nil
}, tracker.TakesATurn)

// TestDo_LongQueriesPause has one workspace hold all turns with queries that would take an hour. They
// let the short ones of another workspace go first, and end at their deadline.
func TestDo_LongQueriesPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		for n := 1; n <= 2; n++ {
			b.mustCount(workspaceNumber(n), 1)
		}
		most, began := processors.Count(), time.Now()
		answered := make(chan error, 2*most)
		for range 2 * most {
			req := request(workspaceNumber(1))
			go func() {
				_, err := b.engine.Do(req, heavyWalk, &heavyWalkIn{Rows: 3_600_000})
				answered <- err
			}()
		}
		synctest.Wait()
		for range 3 {
			asked := time.Now()
			if _, err := b.do(workspaceNumber(2), heavyWalk, &heavyWalkIn{Rows: 300}); err != nil {
				t.Error(err)
			}
			if took := time.Since(asked); took > time.Second {
				t.Errorf("a short query took %v beside long ones", took)
			}
		}
		for range 2 * most {
			wantOutcome(t, <-answered, "not_applied")
		}
		if time.Since(began) > 11*time.Second {
			t.Error("long queries went on behind their deadline")
		}
		if turns := b.engine.heavy; turns.running != 0 || turns.paused != 0 || len(turns.of) != 0 {
			t.Errorf("at the end: %d running, %d paused, %d workspaces", turns.running, turns.paused, len(turns.of))
		}
	})
}
