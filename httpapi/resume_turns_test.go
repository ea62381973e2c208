package httpapi

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// resumer wakes requests and has those that have begun to resume, in a bubble.
type resumer struct {
	turns *resumeTurns
	begun chan begun
	woken map[byte][]*parked // of each workspace, in the order in which they were woken
	has   map[*parked]resumeTurn
	held  []*parked // whose turn has not ended
}

type begun struct {
	p    *parked
	turn resumeTurn
}

func newResumer(most int) *resumer {
	r := &resumer{begun: make(chan begun, 1000), woken: map[byte][]*parked{}, has: map[*parked]resumeTurn{}}
	r.turns = newResumeTurns(most, func(p *parked, turn resumeTurn) { r.begun <- begun{p, turn} })
	return r
}

func (r *resumer) wake(workspace byte) {
	p := &parked{workspace: [16]byte{workspace}}
	r.woken[workspace] = append(r.woken[workspace], p)
	r.turns.add(p)
	r.take()
}

// take notes the requests that have begun.
func (r *resumer) take() {
	synctest.Wait()
	for len(r.begun) > 0 {
		b := <-r.begun
		r.has[b.p] = b.turn
		r.held = append(r.held, b.p)
	}
}

// end ends the turn of a request that holds one.
func (r *resumer) end(i int) {
	p := r.held[i]
	r.held = append(r.held[:i], r.held[i+1:]...)
	r.turns.end(r.has[p])
	r.take()
}

// of returns the number of turns that a workspace has.
func (r *resumer) of(workspace byte) (n int) {
	for _, p := range r.held {
		if p.workspace[0] == workspace {
			n++
		}
	}
	return n
}

// check fails if a request has begun before an earlier one of its workspace, or if there are more turns than there may be.
func (r *resumer) check(t *testing.T, most int) {
	t.Helper()
	if len(r.held) > most {
		t.Errorf("%d requests resume at once, %d at most may", len(r.held), most)
	}
	for workspace, all := range r.woken {
		waits := false
		for _, p := range all {
			_, has := r.has[p]
			if has && waits {
				t.Errorf("workspace %d: a request has passed another one", workspace)
			}
			waits = waits || !has
		}
		if waits && r.of(workspace) == 0 && len(r.held) < most {
			t.Errorf("workspace %d waits without a turn, and %d of %d are taken", workspace, len(r.held), most)
		}
	}
}

// Requests of some workspaces are woken, and their turns end, in any order.
func TestResumeTurns_EachRequestResumesOnce(t *testing.T) {
	t.Parallel()
	const most = 8
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			r := newResumer(most)
			r.turns.stall = time.Hour
			for range 120 {
				if random.IntN(5) < 3 {
					r.wake(byte(random.IntN(1 + random.IntN(6))))
				} else if len(r.held) > 0 {
					r.end(random.IntN(len(r.held)))
				}
				r.check(t, most)
			}
			for len(r.held) > 0 {
				r.end(random.IntN(len(r.held)))
				r.check(t, most)
			}
			for workspace, all := range r.woken {
				for _, p := range all {
					if _, has := r.has[p]; !has {
						t.Errorf("seed %d: a request of workspace %d does not resume", seed, workspace)
					}
				}
			}
			if len(r.turns.of) != 0 || r.turns.running != 0 || r.turns.order.Len() != 0 {
				t.Errorf("seed %d: %d workspaces and %d turns are left", seed, len(r.turns.of), r.turns.running)
			}
			time.Sleep(2 * time.Hour) // the timer ends by itself
			r.turns.mu.Lock()
			defer r.turns.mu.Unlock()
			if r.turns.looks {
				t.Error("the timer is set although no request waits")
			}
		})
	}
}

// A workspace leaves turns to others, which have them at once.
func TestResumeTurns_LeaveSomeToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResumer(8)
		r.turns.stall = time.Hour
		for range 100 {
			r.wake(1)
		}
		if n := r.of(1); n != 4 {
			t.Errorf("a workspace has %d turns of 8, want 4", n)
		}
		for workspace := byte(2); workspace < 6; workspace++ {
			r.wake(workspace)
			if r.of(workspace) != 1 {
				t.Errorf("the only request of workspace %d waits", workspace)
			}
		}
		for len(r.held) > 0 {
			r.end(0)
		}
	})
}

// Requests that wait for something else while they have their turns keep no others waiting.
func TestResumeTurns_ThoseThatWaitAreNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResumer(8)
		for range 12 {
			r.wake(1)
		}
		for _, want := range []int{4, 8, 12} {
			if n := r.of(1); n != want {
				t.Errorf("%d requests have resumed, want %d", n, want)
			}
			time.Sleep(resumeStall)
			r.take()
		}
		for len(r.held) > 0 {
			r.end(0) // of a turn that is not counted any longer, too
		}
		if len(r.turns.of) != 0 || r.turns.running != 0 {
			t.Errorf("%d workspaces and %d turns are left", len(r.turns.of), r.turns.running)
		}
		time.Sleep(resumeStall)
	})
}

// blocked is a request that waits while it resumes.
type blocked struct {
	req  *tracker.Request
	arm  chan func()
	in   *atomic.Int64
	goOn chan struct{}
}

func (w *blocked) Arm(wake func()) { w.arm <- wake }

func (w *blocked) Resume() (tracker.Reply, bool, error) {
	w.in.Add(1)
	<-w.goOn
	return tracker.Reply{Body: []byte(`{"id":"` + w.req.ID + `"}`)}, false, nil
}

func (w *blocked) Leave() {}

// Polls that one event wakes resume a few at a time. Claims do so until they run: many of them commit together.
func TestPark_WokenAFewAtATime(t *testing.T) {
	t.Parallel()
	const n = 30
	for name, test := range map[string]struct {
		request string
		claims  bool
	}{
		"polls":  {request: watchRequest},
		"claims": {request: takeRequest("one"), claims: true},
	} {
		b := setup(t)
		b.resumes.most, b.resumes.stall = 8, time.Hour
		arm, goOn := make(chan func(), n), make(chan struct{})
		var in atomic.Int64
		b.engine.mu.Lock()
		b.engine.waiting = func(req *tracker.Request) tracker.Waiting { return &blocked{req, arm, &in, goOn} }
		b.engine.mu.Unlock()
		var answers []func()
		for range n {
			c, r := dial(t, b.addr)
			if _, err := io.WriteString(c, test.request); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, func() { wantBody(t, r, 200, "") })
		}
		for range n {
			(<-arm)()
		}
		want := n
		if !test.claims {
			want = 4
			b.resumes.mu.Lock()
			if b.resumes.running != want {
				t.Errorf("%s: %d resume at once, want %d", name, b.resumes.running, want)
			}
			b.resumes.mu.Unlock()
		}
		testkit.Eventually(t, "they resume", func() bool { return in.Load() == int64(want) })
		close(goOn)
		for _, answer := range answers {
			answer()
		}
		testkit.Eventually(t, "no turn is held", func() bool {
			b.resumes.mu.Lock()
			defer b.resumes.mu.Unlock()
			return b.resumes.running == 0 && len(b.resumes.of) == 0
		})
	}
}
