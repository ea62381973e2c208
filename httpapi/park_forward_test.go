package httpapi

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// The node that a client asked waits for the one that serves its workspace. That one parks the
// request. When it serves the workspace no longer and has no answer, the request goes to the next
// owner.
func TestPark_Forwarded(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		a := newAtlas("b")
		entry, first, second := a.join(t, "a"), a.join(t, "b"), a.join(t, "c")
		if direct {
			entry = first
		}
		waits, later := sleepy(first, 0), sleepy(second, 0)
		c, r := dial(t, entry.addr)
		if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
			t.Fatal(err)
		}
		w := <-waits
		wake := <-w.armed
		a.move("c")
		w.answers("", tracker.Moved("Another node serves the workspace."))
		wake()
		(<-(<-later).armed)()
		wantBody(t, r, 200, `{"id":"mine"}`)
		if !w.hasLeft() {
			t.Error("the first owner still waits for it")
		}
	}
}

// A request that waits at an owner is passed on each time that the workspace moves, also long after
// the first time: there was an owner meanwhile.
func TestPark_ForwardedAgain(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	a.join(t, "d")
	var later atomic.Int64 // by how much the time is later than the clock
	entry.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	const moved = "HTTP/1.1 503 Service Unavailable\r\nSwitchyard-Moved: 1\r\nContent-Length: 0\r\n\r\n"
	for _, node := range []struct {
		name, next string
		waits      time.Duration
	}{{"b", "c", 0}, {"c", "d", ownerWait + 500*time.Millisecond}} {
		a.haunt(t, node.name, func(peer net.Conn) {
			readOne(peer)
			later.Add(int64(node.waits))
			a.move(node.next)
			_, _ = io.WriteString(peer, moved)
		})
	}
	c, r := dial(t, entry.addr)
	if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
		t.Fatal(err)
	}
	wantBody(t, r, 201, `{"id":"d"}`)
}

// A poll compares with its first look, which is lost with the node that made it: the next owner
// answers at once. A claim goes on waiting.
func TestPark_FirstLookIsLost(t *testing.T) {
	t.Parallel()
	if !tracker.PollSession.SinceFirstLook {
		t.Error("polls compare with nothing")
	}
	for _, row := range []struct {
		from, to string // the nodes that the client asks, and that serves the workspace after b
		path     string
		final    bool
	}{
		{"a", "c", "watch?wait=5", true}, {"b", "c", "watch?wait=5", true}, {"a", "a", "watch?wait=5", true}, {"b", "b", "watch?wait=5", true},
		{"a", "c", "take", false}, {"b", "b", "take", false},
	} {
		t.Run(row.from+" "+row.to+" "+row.path, func(t *testing.T) {
			t.Parallel()
			at := newAtlas("b")
			nodes := map[string]*bundle{}
			for _, name := range []string{"a", "b", "c"} {
				nodes[name] = at.join(t, name)
			}
			waits := sleepy(nodes["b"], 0)
			c, r := dial(t, nodes[row.from].addr)
			if _, err := io.WriteString(c, strings.Replace(takeRequest("mine"), take, strings.TrimSuffix(take, "take")+row.path, 1)); err != nil {
				t.Fatal(err)
			}
			w := <-waits
			wake := <-w.armed
			if w.req.Final {
				t.Error("the first node does not let the request wait")
			}
			nodes["b"].engine.mu.Lock()
			nodes["b"].engine.waiting = nil
			nodes["b"].engine.mu.Unlock()
			at.move(row.to)
			w.answers("", tracker.Moved("Another node serves the workspace."))
			wake()
			wantBody(t, r, 201, "")
			if req, _, calls := nodes[row.to].engine.seen(); calls != 1 || req.Final != row.final {
				t.Errorf("%d calls, the last with Final %v", calls, req.Final)
			}
		})
	}
}

// A claim that was made while its request slept is answered by the node that made it, although
// another node serves the workspace by then. A second claim would leave the session of the first
// to nobody. The same holds if nobody knows whether the claim was made.
func TestPark_AnswersAfterTheWorkspaceMoved(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"forwarded": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry, first, second := a.join(t, "a"), a.join(t, "b"), a.join(t, "c")
			if direct {
				entry = first
			}
			waits := sleepy(first, 0)
			c, r := dial(t, entry.addr)
			for _, outcome := range []struct {
				status int
				body   string
				err    error
			}{
				{200, `{"id":"claimed"}`, nil},
				{503, "", tracker.OutcomeUnknown("The change was not confirmed in time.")},
			} {
				a.move("b")
				if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
					t.Fatal(err)
				}
				w := <-waits
				wake := <-w.armed
				w.answers(outcome.body, outcome.err)
				a.move("c")
				wake()
				wantBody(t, r, outcome.status, outcome.body)
			}
			if _, _, calls := second.engine.seen(); calls > 0 {
				t.Errorf("the next owner was asked %d times", calls)
			}
		})
	}
}

// A request of which a node that died may have done its work is parked at the next owner. If it can't
// be carried out there, nobody can say that nothing was done.
func TestPark_AfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(a *atlas){"here": func(*atlas) {}, "elsewhere": func(a *atlas) { a.move("c") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry, third := a.join(t, "a"), a.join(t, "c")
			third.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
				return tracker.Reply{}, tracker.NotApplied("The service is busy.")
			})
			a.haunt(t, "b", func(c net.Conn) {
				readOne(c)
				a.move("a")
			})
			waits := sleepy(entry, 0)
			c, r := dial(t, entry.addr)
			if _, err := io.WriteString(c, strings.Replace(takeRequest("mine"), "\r\n", "\r\nIdempotency-Key: k\r\n", 1)); err != nil {
				t.Fatal(err)
			}
			w := <-waits
			wake := <-w.armed
			if next(a); name == "here" {
				w.answers("", tracker.NotApplied("The service is busy."))
			} else {
				w.answers("", tracker.Moved("Another node serves the workspace."))
			}
			wake()
			got, err := readAnswer(r, "POST")
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != 503 || outcomeOf(got) != "unknown" {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
		})
	}
}

// A request of which a node that died may have done its work is parked at the next owner, and passed on when the
// workspace moves once more. If there is no place for it by then, nobody can say that nothing was done.
func TestPark_NoPlaceAfterALostAnswer(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a", func(c *Config) { c.Limits.AddressWaiting = 1 })
	a.join(t, "c")
	a.haunt(t, "b", func(c net.Conn) {
		readOne(c)
		a.move("a")
	})
	waits := sleepy(entry, 0)
	c, r := dial(t, entry.addr)
	if _, err := io.WriteString(c, strings.Replace(takeRequest("mine"), "\r\n", "\r\nIdempotency-Key: k\r\n", 1)); err != nil {
		t.Fatal(err)
	}
	w := <-waits
	wake := <-w.armed
	entry.waits.mu.Lock()
	for addr := range entry.waits.by { // another request of the address takes the place when this one wakes up
		entry.waits.by[addr]++
	}
	entry.waits.mu.Unlock()
	a.move("c")
	w.answers("", tracker.Moved("Another node serves the workspace."))
	wake()
	got, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 503 || outcomeOf(got) != "unknown" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// The node that a client asked gets the workspace while the request is at its former owner. The
// request counts once for its address, there and here, and not at all when it is done.
func TestPark_CountsOnceWhereverItWaits(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"a claim": false, "a stream": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry := a.join(t, "a", func(c *Config) { c.Limits.AddressWaiting = 1 })
			a.haunt(t, "b", func(peer net.Conn) {
				readOne(peer)
				if n := entry.waitingCount(); n != 1 {
					t.Errorf("it counts %d times at its former owner", n)
				}
				a.move("a")
				_, _ = io.WriteString(peer, "HTTP/1.1 503 Service Unavailable\r\nSwitchyard-Moved: 1\r\nContent-Length: 0\r\n\r\n")
			})
			once := func() {
				t.Helper()
				if n := entry.waitingCount(); n != 1 {
					t.Errorf("it counts %d times", n)
				}
			}
			if streams {
				f := newFakeStream()
				entry.engine.stream = f
				listenTo(t, entry)
				if t.Failed() {
					return
				}
				l := <-f.started
				once()
				l.End()
			} else {
				waits := sleepy(entry, 0)
				c, r := dial(t, entry.addr)
				if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
					t.Fatal(err)
				}
				w := <-waits
				testkit.Eventually(t, "it waits, or was refused", func() bool { return len(w.armed) > 0 || w.hasLeft() })
				once()
				if len(w.armed) > 0 {
					(<-w.armed)()
				}
				wantBody(t, r, 200, `{"id":"mine"}`)
			}
			testkit.Eventually(t, "nothing is counted", func() bool { return entry.waitingCount() == 0 })
		})
	}
}
