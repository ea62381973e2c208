package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// atlas is the map of a cluster: who serves everything, and where nodes listen for each other.
type atlas struct {
	mu      sync.Mutex
	owner   string
	changed chan struct{}
	at      map[string]string
	dials   map[string]int
	onDial  func()    // called before a dial ends; nil: nothing
	unowned time.Time // since when there has been no owner
	looks   int       // for the owner
}

func newAtlas(owner string) *atlas {
	return &atlas{owner: owner, changed: make(chan struct{}), at: map[string]string{}, dials: map[string]int{}}
}

func (a *atlas) move(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owner = owner
	close(a.changed)
	a.changed = make(chan struct{})
}

// seat is an atlas as one node sees it.
type seat struct {
	*atlas
	node string
}

func (s seat) Owner([16]byte) (node string, here bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return s.owner, s.owner == s.node, s.changed
}

// ownerWait is how long requests wait after the last sign of an owner.
const ownerWait = 3 * time.Second

func (s seat) OwnerDue(_ [16]byte, missing time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unowned.IsZero() {
		missing = earlier(missing, s.unowned)
	}
	return missing.Add(ownerWait)
}

func (s seat) Dial(ctx context.Context, node string) (net.Conn, error) {
	s.mu.Lock()
	addr := s.at[node]
	s.dials[node]++
	onDial := s.onDial
	s.mu.Unlock()
	if onDial != nil {
		onDial()
	}
	if addr == "" {
		return nil, errors.New("no such node")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// join starts a node that others reach.
func (a *atlas) join(t testing.TB, node string, adjust ...func(*Config)) *bundle {
	t.Helper()
	b := setup(t, append(adjust, func(c *Config) { c.Placement = seat{a, node} })...)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{"id":"` + node + `"}`), ETag: `"7"`}, nil
	})
	a.listen(t, node, b)
	return b
}

// listen lets other nodes reach one.
func (a *atlas) listen(t testing.TB, node string, b *bundle) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.at[node] = ln.Addr().String()
	a.mu.Unlock()
	go func() { _ = b.ServePeers(ln) }()
}

// haunt stands in for a node that does what it likes with each connection.
func (a *atlas) haunt(t testing.TB, node string, do func(net.Conn)) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.at[node] = ln.Addr().String()
	a.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				do(c)
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); all.Wait() })
}

// readOne takes a request in.
func readOne(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }

const thingBody = `{"title":"t"}`

func outcomeOf(a *answer) string {
	details, _ := a.failure.Details.(map[string]any)
	outcome, _ := details["outcome"].(string)
	return outcome
}

func TestForward_PassesTheAnswerThrough(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	for range 3 {
		got := entry.do(t, "POST", things, thingBody, "Content-Type: application/json", "X-Request-Id: mine", "If-Match: \"1\"", "Idempotency-Key: k")
		if got.StatusCode != 201 || got.body != `{"id":"b"}` || got.Header.Get("ETag") != `"7"` || got.Header.Get("X-Request-Id") != "mine" || len(got.Header.Values("Date")) != 1 {
			t.Fatalf("%d %v %s", got.StatusCode, got.Header, got.body)
		}
	}
	req, in, calls := owner.engine.seen()
	if calls != 3 || req.Credential != token || req.ID != "mine" || req.Idempotency == nil || req.Idempotency.Key != "k" || in.(*makeThingIn).Title != "t" {
		t.Errorf("%d calls, the last with %+v %+v", calls, req, in)
	}
	if left := time.Until(req.Deadline); left <= 0 || left > time.Minute {
		t.Errorf("the owner has %s left", left)
	}
	if _, _, calls := entry.engine.seen(); calls != 0 {
		t.Error("the node asked ran it too")
	}
	if a.dials["b"] != 1 {
		t.Errorf("%d connections for three requests", a.dials["b"])
	}
	// A refusal of the owner is passed on.
	if got := entry.do(t, "POST", things, `{"title":5}`); got.StatusCode != 400 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := entry.do(t, "GET", things+"/1", "", "Connection: close"); got.StatusCode != 201 || !got.Close {
		t.Errorf("%d, close %t", got.StatusCode, got.Close)
	}
}

func TestForward_LocalRefusalsStayLocal(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	for path, want := range map[string]int{"/nowhere": 404, "/w/no-uuid/things": 404, "/healthz": 200, "/openapi.json": 200} {
		if got := entry.do(t, "GET", path, ""); got.StatusCode != want {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	if got := entry.do(t, "PUT", things, ""); got.StatusCode != 405 {
		t.Errorf("PUT: %d", got.StatusCode)
	}
	if got := entry.do(t, "POST", things, strings.Repeat(" ", defaultMaxBody+1)); got.StatusCode != 413 {
		t.Errorf("a body too large: %d", got.StatusCode)
	}
	if len(a.dials) != 0 {
		t.Errorf("dialed %v", a.dials)
	}
}

func TestForward_FollowsTheOwner(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		first func(t *testing.T, a *atlas, move func())
	}{
		{"says that it moved", func(t *testing.T, a *atlas, move func()) {
			a.join(t, "b").engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
				move()
				return tracker.Reply{}, tracker.Moved("elsewhere")
			})
		}},
		{"is not the owner by its own map", func(t *testing.T, a *atlas, move func()) {
			a.haunt(t, "b", func(c net.Conn) {
				readOne(c)
				move()
				_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nSwitchyard-Moved: 1\r\nContent-Length: 2\r\n\r\n{}")
			})
		}},
		{"can't be dialed", func(_ *testing.T, _ *atlas, move func()) { time.AfterFunc(50*time.Millisecond, move) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry := a.join(t, "a")
			a.join(t, "c")
			var once sync.Once
			row.first(t, a, func() { once.Do(func() { a.move("c") }) })
			// Not safe to repeat, and repeated: nothing was done.
			if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 201 || got.body != `{"id":"c"}` {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
		})
	}
	t.Run("from here to another node", func(t *testing.T) {
		t.Parallel()
		a := newAtlas("a")
		entry := a.join(t, "a")
		a.join(t, "c")
		entry.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			a.move("c")
			return tracker.Reply{}, tracker.Moved("elsewhere")
		})
		if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 201 || got.body != `{"id":"c"}` {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	})
}

func TestForward_NobodyServes(t *testing.T) {
	t.Parallel()
	a := newAtlas("")
	entry := a.join(t, "a", func(c *Config) { c.RequestTimeout = time.Hour }) // which the request must not take
	began := time.Now()
	got := entry.do(t, "POST", things, thingBody)
	took := time.Since(began)
	if got.StatusCode != 503 || outcomeOf(got) != "not_applied" || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if took < ownerWait {
		t.Errorf("refused after %s", took)
	}
}

// A connection to a node that is paused takes a second to fail. The node has given no sign meanwhile, so
// the time counts: with it a request would be refused after more than four seconds (Decision 55).
func TestForward_CountsTheTimeOfADial(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	var later atomic.Int64 // by how much the time is later than the clock
	entry.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	a.mu.Lock()
	a.onDial = func() { later.Add(int64(ownerWait / 2)) }
	a.mu.Unlock()
	got := entry.do(t, "POST", things, thingBody)
	if got.StatusCode != 503 || outcomeOf(got) != "not_applied" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if dials := a.dialed("b"); dials > 2 {
		t.Errorf("refused after %s", time.Duration(dials)*ownerWait/2)
	}
}

// TestForward_RefusesAtOnceWithoutAnOwner asks a node that is cut off: its requests must
// not each wait for an owner that others did not find.
func TestForward_RefusesAtOnceWithoutAnOwner(t *testing.T) {
	t.Parallel()
	a := newAtlas("")
	entry := a.join(t, "a")
	a.mu.Lock()
	a.unowned = time.Now().Add(-ownerWait)
	a.mu.Unlock()
	for n := range 3 {
		got := entry.do(t, "POST", things, thingBody)
		if got.StatusCode != 503 || outcomeOf(got) != "not_applied" || got.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
		a.mu.Lock()
		if a.looks != n+1 {
			t.Errorf("request %d looked for the owner %d times", n+1, a.looks-n)
		}
		a.looks = n + 1
		a.mu.Unlock()
	}
	// With an owner all is as before, also when that one was lost a moment ago.
	a.join(t, "b")
	a.move("b")
	a.mu.Lock()
	a.unowned = time.Time{}
	a.mu.Unlock()
	if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 201 {
		t.Errorf("with an owner: %d %s", got.StatusCode, got.body)
	}
	a.move("")
	a.mu.Lock()
	a.unowned, a.looks = time.Now(), 0
	a.mu.Unlock()
	time.AfterFunc(0, func() {
		testkit.Eventually(t, "the request to look for its owner", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.looks > 0 })
		a.move("b")
	})
	if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 201 {
		t.Errorf("during a fail-over: %d %s", got.StatusCode, got.body)
	}
}

// Once a try may have been applied no answer says that nothing was.
func TestForward_NeverNotAppliedAfterALoss(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	var later atomic.Int64 // by how much the time is later than the clock
	entry.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	a.haunt(t, "b", func(c net.Conn) {
		readOne(c)
		later.Store(int64(time.Hour)) // the answer is due, and there is no owner
		a.move("")
	})
	got := entry.do(t, "POST", things, thingBody, "Idempotency-Key: k")
	if got.StatusCode != 503 || outcomeOf(got) != "unknown" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// A connection that the other node closed while it was idle is not used: a change
// on it would count as sent.
func TestForward_IdleConnectionsThatEnded(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	closed := make(chan struct{}, 8)
	a.haunt(t, "b", func(c net.Conn) {
		readOne(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		_ = c.Close()
		closed <- struct{}{}
	})
	for range 4 {
		if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 200 {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		<-closed
		testkit.Eventually(t, "the kernel tells that the connection has ended", func() bool {
			entry.pools.mu.Lock()
			defer entry.pools.mu.Unlock()
			return !slices.ContainsFunc(entry.pools.nodes["b"], func(kept *peerConn) bool { return quiet(kept.conn) })
		})
	}
}

// A node that accepts and never answers is waited for until the deadline at most,
// or until the connection is cut.
func TestForward_SilentNode(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a", func(c *Config) { c.RequestTimeout = 3 * time.Second })
	quit := make(chan struct{})
	a.haunt(t, "b", func(net.Conn) { <-quit })
	defer close(quit)
	began := time.Now()
	got := entry.do(t, "POST", things, thingBody)
	if took := time.Since(began); got.StatusCode != 503 || outcomeOf(got) != "unknown" || took > time.Minute { // 3 s on a machine that has the time
		t.Errorf("%d %s after %s", got.StatusCode, got.body, took)
	}
}

// The headers by which nodes inform each other are not accepted from clients.
func TestForward_HeadersOfClients(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	if got := entry.do(t, "POST", things, thingBody, "Switchyard-Time-Left: 1", "Switchyard-Moved: 1"); got.StatusCode != 201 {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	req, _, _ := owner.engine.seen()
	if left := time.Until(req.Deadline); left < 5*time.Second {
		t.Errorf("the owner was given %s", left)
	}
	// A client that asks the node by itself is a client there too.
	if got := owner.do(t, "POST", things, thingBody, "Switchyard-Time-Left: 1"); got.StatusCode != 201 || got.Header.Get("Switchyard-Moved") != "" {
		t.Fatalf("%d %v", got.StatusCode, got.Header)
	}
	if req, _, _ := owner.engine.seen(); time.Until(req.Deadline) < 5*time.Second {
		t.Errorf("the owner was given %s", time.Until(req.Deadline))
	}
}

// An answer to HEAD names a length and has no body; waiting for one would last until
// the answer is due.
func TestForward_Head(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	for _, row := range []struct {
		path   string
		err    error
		status int
	}{
		{things + "/x", nil, 200},
		{streamPath, nil, 200},
		{things + "/x", tracker.NotFound("thing"), 404},
	} {
		owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: []byte(`{"id":"b"}`), ETag: `"7"`}, row.err
		})
		for range 2 {
			own := owner.do(t, "HEAD", row.path, "", "Accept: application/json")
			got := entry.do(t, "HEAD", row.path, "", "Accept: application/json")
			if got.StatusCode != row.status || got.StatusCode != own.StatusCode || got.ContentLength != own.ContentLength || got.ContentLength <= 0 || got.body != "" {
				t.Errorf("%s: %d of %d bytes, by its owner %d of %d", row.path, got.StatusCode, got.ContentLength, own.StatusCode, own.ContentLength)
			}
		}
	}
	if a.dials["b"] != 1 {
		t.Errorf("%d connections", a.dials["b"])
	}
	if got := entry.do(t, "GET", things+"/x", ""); got.StatusCode != 404 || got.failure.Code != tracker.CodeNotFound {
		t.Errorf("afterwards: %d %s", got.StatusCode, got.body)
	}
}
