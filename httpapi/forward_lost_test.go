package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// A request that may have been carried out is repeated only where that is safe.
func TestForward_LostAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, method, body, header string
		status                     int
		outcome                    string
	}{
		{"a read", "GET", "", "X-A: b", 201, ""},
		{"a change with a key", "POST", thingBody, "Idempotency-Key: k", 201, ""},
		{"a change without one", "POST", thingBody, "X-A: b", 503, "unknown"},
		{"a change with a wrong one", "POST", thingBody, "Idempotency-Key: k\r\nIdempotency-Key: l", 503, "unknown"},
	} {
		for how, lose := range map[string]func(net.Conn){
			"closed":     func(net.Conn) {},
			"cut short":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{") },
			"no HTTP":    func(c net.Conn) { _, _ = io.WriteString(c, "garbage\r\n\r\n") },
			"half heads": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Len") },
		} {
			t.Run(row.name+", "+how, func(t *testing.T) {
				t.Parallel()
				a := newAtlas("b")
				entry := a.join(t, "a")
				a.join(t, "c")
				a.haunt(t, "b", func(c net.Conn) {
					readOne(c)
					a.move("c")
					lose(c)
				})
				got := entry.do(t, row.method, things, row.body, row.header)
				if got.StatusCode != row.status || outcomeOf(got) != row.outcome {
					t.Errorf("%d %s", got.StatusCode, got.body)
				}
			})
		}
	}
}

// The first try may have ended the credential: the deletion of a workspace does. A repeat that finds none
// does not say that nothing was done.
func TestForward_ACredentialThatALostTryMayHaveEnded(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"a", "c"} {
		t.Run("the next owner is "+owner, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			nodes := map[string]*bundle{"a": a.join(t, "a"), "c": a.join(t, "c")}
			nodes[owner].engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
				return tracker.Reply{}, tracker.Unauthorized()
			})
			a.haunt(t, "b", func(c net.Conn) {
				readOne(c)
				a.move(owner)
			})
			if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != 503 || outcomeOf(got) != "unknown" {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
			if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != 401 {
				t.Errorf("a new request: %d %s", got.StatusCode, got.body)
			}
		})
	}
}

// The first try may have ended the caller's right to the request, as that of an admin to remove their own membership.
// A repeat that is refused for that does not say that nothing was done. One that the operation itself refuses does:
// it finds no kept answer.
func TestForward_ARightThatALostTryMayHaveEnded(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*tracker.Error{tracker.Forbidden("m", "h"), tracker.NotFound("workspace")} {
		for _, owner := range []string{"a", "c"} {
			for _, admitted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s of %s, admitted: %t", refusal.Code, owner, admitted), func(t *testing.T) {
					t.Parallel()
					a := newAtlas("b")
					nodes := map[string]*bundle{"a": a.join(t, "a"), "c": a.join(t, "c")}
					if status := statuses[refusal.Code]; admitted {
						nodes[owner].engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
							return tracker.Reply{}, refusal
						})
						a.haunt(t, "b", func(c net.Conn) { readOne(c); a.move(owner) })
						if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != status {
							t.Errorf("%d %s", got.StatusCode, got.body)
						}
						return
					}
					unadmitted := *refusal
					unadmitted.Unadmitted = true
					nodes[owner].engine.refuse(&unadmitted)
					a.haunt(t, "b", func(c net.Conn) { readOne(c); a.move(owner) })
					if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != 503 || outcomeOf(got) != "unknown" {
						t.Errorf("%d %s", got.StatusCode, got.body)
					}
					got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k")
					if got.StatusCode != statuses[refusal.Code] || got.Header.Get(headerUnadmitted) != "" {
						t.Errorf("a new request: %d %v %s", got.StatusCode, got.Header, got.body)
					}
				})
			}
		}
	}
}

// The bounds on callers are looked at before the answer that is kept for a key. A repeat that exceeds one of them does
// not say that nothing was done.
func TestForward_ABoundThatTheRepeatOfALostTryExceeds(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"a", "c"} {
		t.Run("the next owner is "+owner, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			slow := func(c *Config) { c.Rate = Rate{Requests: 1, Per: time.Hour} }
			nodes := map[string]*bundle{"a": a.join(t, "a", slow), "c": a.join(t, "c", slow)}
			a.move(owner)
			if got := nodes["a"].do(t, "POST", things, thingBody); got.StatusCode != 201 {
				t.Fatalf("the first request: %d %s", got.StatusCode, got.body)
			}
			a.move("b")
			a.haunt(t, "b", func(c net.Conn) {
				readOne(c)
				a.move(owner)
			})
			if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != 503 || outcomeOf(got) != "unknown" {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
			if got := nodes["a"].do(t, "POST", things, thingBody, "Idempotency-Key: k"); got.StatusCode != 429 {
				t.Errorf("a new request: %d %s", got.StatusCode, got.body)
			}
		})
	}
}

// A node that accepts connections and ends them is asked again after growing pauses, until the
// time is up.
func TestForward_PausesIfNewConnectionsEnd(t *testing.T) {
	t.Parallel()
	const asks, pauses = 10, (2 + 4 + 8 + 16 + 32 + 64 + 3*100) * time.Millisecond
	a := newAtlas("b")
	entry := a.join(t, "a")
	began := time.Now()
	var later atomic.Int64 // by how much the time is later: it passes at once, when the node was asked often enough
	entry.now = func() time.Time { return began.Add(time.Duration(later.Load())) }
	var asked atomic.Int32
	a.haunt(t, "b", func(c net.Conn) {
		readOne(c)
		if asked.Add(1) == asks {
			later.Store(int64(time.Hour))
		}
	})
	if got := entry.do(t, "GET", things, ""); got.StatusCode != 503 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if n, took := asked.Load(), time.Since(began); n != asks || took < pauses {
		t.Errorf("the node was asked %d times within %s", n, took)
	}
}

// A read that has used up its time on a kept connection does not try, and so end, the other kept ones.
func TestForward_KeepsConnectionsWhenTheTimeIsUp(t *testing.T) {
	t.Parallel()
	const kept = 5
	a := newAtlas("b")
	entry := a.join(t, "a")
	defer entry.pools.close() // ends the connections that b reads from
	var later atomic.Int64    // by how much the time is later
	entry.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	var first sync.WaitGroup
	first.Add(kept)
	var came, asked atomic.Int32
	a.haunt(t, "b", func(c net.Conn) {
		readOne(c)
		if came.Add(1) > kept {
			return
		}
		first.Done()
		first.Wait() // each request has a connection of its own
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			asked.Add(1)
			later.Store(int64(time.Hour))
		}
	})
	var all sync.WaitGroup
	for range kept {
		all.Go(func() { entry.do(t, "GET", things, "") })
	}
	all.Wait()
	if got := entry.do(t, "GET", things, ""); got.StatusCode != 503 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the read was sent %d times", n)
	}
}
