package actors

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
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
		most := runtime.GOMAXPROCS(0)
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
