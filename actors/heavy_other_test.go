package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/processors"
)

// TestTakeTurn_ByWorkspace has one workspace ask for many turns outside of operations. Another one's comes
// next, and of the many first that of a request which goes on. Heavy queries and these don't wait for each other.
func TestTakeTurn_ByWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.mustCount(workspaceNumber(1), 1)
		most := processors.Count()
		type taken struct {
			name string
			end  func()
		}
		turns := make(chan taken, most+4)
		ask := func(name string, workspace int, goesOn bool, deadline time.Duration) {
			req := request(workspaceNumber(workspace))
			req.Deadline = time.Now().Add(deadline)
			go func() {
				end, err := b.engine.TakeTurn(req, goesOn)
				if err != nil {
					wantOutcome(t, err, "not_applied")
					name, end = "late", func() {}
				}
				turns <- taken{name, end}
			}()
			synctest.Wait()
		}
		for range most {
			ask("many", 1, false, time.Hour)
		}
		ask("of many", 1, false, time.Hour)
		ask("late", 1, false, time.Second)
		ask("on", 1, true, time.Hour)
		ask("other", 2, false, time.Hour)
		if len(turns) != most {
			t.Fatalf("there are %d turns, want %d", len(turns), most)
		}
		in := heavyIn{Ran: make(chan int, 1), Leave: make(chan struct{}, 1)}
		in.Leave <- struct{}{}
		req := request(workspaceNumber(1))
		req.Deadline = time.Now().Add(time.Hour)
		if _, err := b.engine.Do(req, heavyQuery, &in); err != nil {
			t.Errorf("a heavy query: %v", err)
		}
		time.Sleep(2 * time.Second)
		var held []taken
		for range most {
			held = append(held, <-turns)
		}
		if late := <-turns; late.name != "late" {
			t.Errorf("%s has a turn", late.name)
		}
		held[0].end()
		for _, want := range []string{"other", "on", "of many"} {
			synctest.Wait()
			got := <-turns
			if got.name != want {
				t.Errorf("%s has a turn, want %s", got.name, want)
			}
			got.end()
		}
		for _, turn := range held[1:] {
			turn.end()
		}
		if n := len(b.engine.others.of); n != 0 {
			t.Errorf("%d workspaces are left", n)
		}
	})
}
