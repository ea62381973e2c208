package httpapi

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// slow opens a connection that takes little at a time.
func slow(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	return c
}

// refusedWith reads an answer, which says that nothing was done and names the flag.
func refusedWith(t *testing.T, a *answer, flag string) {
	t.Helper()
	if a.StatusCode != 503 || outcomeOf(a) != "not_applied" || a.Header.Get("Retry-After") == "" || !strings.Contains(a.failure.Message, flag) {
		t.Errorf("%d %s, want a refusal that names %s", a.StatusCode, a.body, flag)
	}
}

// Answers that clients don't take are charged to their workspace; past its share
// larger answers are refused, smaller ones and other workspaces' go on.
func TestBudget_AnswersNotTaken(t *testing.T) {
	t.Parallel()
	const page = 8 << 20
	b := setup(t, func(c *Config) {
		c.WriteTimeout = time.Hour
		c.Limits = Limits{Bytes: 20 * page, WorkspaceBytes: 4 * page}
	})
	large := strings.Repeat("x", page)
	b.engine.set(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		if op == opList {
			return tracker.Reply{Body: []byte(large)}, nil
		}
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	})
	held := func() int64 { return b.budget.all.Load() }
	request := "GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	var conns []net.Conn
	for i := range 4 {
		c := slow(t, b.addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		testkit.Eventually(t, "an answer in flight", func() bool { return held() == int64(i+1)*page })
	}
	for range 60 {
		refusedWith(t, b.raw(t, 1, request)[0], "--workspace-bytes-in-flight")
	}
	if got := b.do(t, "GET", things+"/x", ""); got.StatusCode != 200 {
		t.Errorf("a small answer: %d %s", got.StatusCode, got.body)
	}
	if got := b.do(t, "POST", things, `{"title":"t"}`); got.StatusCode != 503 {
		t.Errorf("a change whose answer may be large: %d %s", got.StatusCode, got.body)
	}
	other := strings.Replace(request, workspaceID, strings.Replace(workspaceID, "0193", "0194", 1), 1)
	if got := b.raw(t, 1, other)[0]; got.StatusCode != 200 || len(got.body) != page {
		t.Errorf("another workspace: %d with %d bytes", got.StatusCode, len(got.body))
	}
	// That one was taken; the others end with their connections.
	testkit.Eventually(t, "the answer to be taken", func() bool { return held() == 4*page })
	for _, c := range conns {
		_ = c.Close()
	}
	testkit.Eventually(t, "nothing in flight", func() bool { return held() == 0 })
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	if len(b.budget.by) != 0 {
		t.Errorf("accounts %v", b.budget.by)
	}
}

// The engine has the answers to requests that wait for pages charged before it builds many of them. They
// are charged once, and one that there are no bytes for is refused.
func TestBudget_PagesThatWereWaitedFor(t *testing.T) {
	t.Parallel()
	const page = 8 << 20
	b := setup(t, func(c *Config) {
		c.WriteTimeout = time.Hour
		c.Limits = Limits{Bytes: 20 * page, WorkspaceBytes: 3 * page}
	})
	charged := make(chan int64, 4)
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		body := []byte(strings.Repeat("x", page))
		err := req.Charge(body)
		charged <- b.budget.all.Load()
		if err != nil {
			return tracker.Reply{}, err
		}
		return tracker.Reply{Body: body}, nil
	})
	request := "POST " + watch + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 0\r\n\r\n"
	for i := range 3 {
		if _, err := io.WriteString(slow(t, b.addr), request); err != nil {
			t.Fatal(err)
		}
		if got := <-charged; got != int64(i+1)*page {
			t.Errorf("%d bytes are charged for %d answers of %d", got, i+1, page)
		}
	}
	refusedWith(t, b.raw(t, 1, request)[0], "--workspace-bytes-in-flight")
	if got := b.budget.all.Load(); got != 3*page {
		t.Errorf("%d bytes are charged for 3 answers of %d", got, page)
	}
}

// The memory of each query's answer is counted while the query has its turn, if it takes one.
func TestBudget_QueriesAreCountedByTheEngine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for request, want := range map[string]bool{"GET " + things: true, "GET " + things + "/x": true, "POST " + things: false} {
		method, path, _ := strings.Cut(request, " ")
		counts := !want
		b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
			counts = req.Charge != nil
			return tracker.Reply{Outcome: tracker.NoContent}, nil
		})
		b.do(t, method, path, thingBody)
		if counts != want {
			t.Errorf("%s: the engine counts: %t", request, counts)
		}
	}
}

// Workspaces and addresses that hold all they may leave room for others that hold
// nothing: a few workspaces, and any number of them at a few addresses.
func TestBudget_LeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	const page = 1 << 20
	budget := newBudget(&Limits{Bytes: 64 * page, WorkspaceBytes: 16 * page, AnonymousBytes: 16 * page, AddressBytes: 4 * page}, func(string) {})
	workspace := func(i byte) account { return account{kind: workspaceAccount, workspace: [16]byte{i}} }
	address := func(kind accountKind, i byte) account {
		return account{kind: kind, address: netip.AddrFrom4([4]byte{10, 0, 0, i})}
	}
	fill := func(to, from account) (n int) {
		for budget.raise(&conn{}, to, from, answerPart, page, false) == nil {
			n++
		}
		return n
	}
	for name, row := range map[string]struct {
		fill  func(i byte)
		times byte
	}{
		"workspaces":               {func(i byte) { fill(workspace(i), account{}) }, 4},
		"workspaces of an address": {func(i byte) { fill(workspace(i), address(addressAccount, i%3)) }, 99},
		"strangers, then workspaces": {func(i byte) {
			if i < 10 {
				fill(address(anonymousAccount, i), account{})
			} else {
				fill(workspace(i), address(addressAccount, i%3))
			}
		}, 99},
	} {
		budget = newBudget(budget.limits, func(string) {})
		for i := range row.times {
			row.fill(i)
		}
		if n := fill(workspace(100), address(addressAccount, 100)); n < 2 {
			t.Errorf("%s: %d pages were left for a workspace that held none", name, n)
		}
	}
	budget = newBudget(budget.limits, func(string) {})
	for i := range byte(4) {
		fill(address(anonymousAccount, i), account{})
	}
	if n := fill(address(anonymousAccount, 100), account{}); n < 1 {
		t.Errorf("%d pages were left for an address that held none", n)
	}
	// A body may take all that is left, in growing parts, where nothing else holds any.
	budget = newBudget(&Limits{Bytes: 10 * page, WorkspaceBytes: 10 * page}, func(string) {})
	c := &conn{}
	for _, size := range [...]int{page, 4 * page, 9 * page} {
		if err := budget.raise(c, workspace(1), account{}, bodyPart, size, false); err != nil {
			t.Errorf("a body of %d bytes: %v", size, err)
		}
	}
}

// The answer to a change that was made is kept beyond the share, within bounds, and
// never said not to have been applied.
func TestBudget_AnswerToAChange(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits = Limits{WorkspaceBytes: 1 << 20} })
	size := 0
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(strings.Repeat("x", size))}, nil
	})
	size = 3 << 19
	if got := b.do(t, "POST", things, `{"title":"t"}`); got.StatusCode != 201 || len(got.body) != size {
		t.Errorf("%d with %d bytes", got.StatusCode, len(got.body))
	}
	testkit.Eventually(t, "the answer to be taken", func() bool { return b.budget.all.Load() == 0 })
	size = 2 << 20
	got := b.do(t, "POST", things, `{"title":"t"}`)
	if got.StatusCode != 503 || outcomeOf(got) != "unknown" || !strings.Contains(got.failure.Message, "--workspace-bytes-in-flight") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// Bodies of callers without a valid credential share a small part, charged as they
// arrive, at every node. Those whose credential is known do without it.
func TestBudget_AnonymousBodies(t *testing.T) {
	t.Parallel()
	limits := func(c *Config) {
		c.ReadTimeout = time.Minute
		c.Limits = Limits{Bytes: 256 << 20, WorkspaceBytes: 64 << 20, AnonymousBytes: 8 << 20, AddressBytes: 4 << 20}
	}
	a := newAtlas("b")
	entry, owner := a.join(t, "a", limits), a.join(t, "b", limits)
	body := largeBody()
	for name, row := range map[string]struct {
		node *bundle
		head string
	}{
		"public": {owner, "POST /open HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n"},
		// The owner would say 401; the other node has to read the body first.
		"not the owner": {entry, strings.Replace(largeHead(body), token, "swy_bad", 1)},
	} {
		if got := row.node.do(t, "POST", things, thingBody); got.StatusCode != 201 {
			t.Fatalf("%s: %d %s", name, got.StatusCode, got.body)
		}
		// Announced, and not sent: not charged.
		for range 50 {
			c, _ := dial(t, row.node.addr)
			if _, err := io.WriteString(c, row.head+body[:4096]); err != nil {
				t.Fatal(err)
			}
		}
		refused := make(chan *answer, 400)
		for range 40 {
			c, r := dial(t, row.node.addr)
			go func() { _, _ = io.WriteString(c, row.head+body[:1<<20-100]) }()
			go func() {
				if a, err := readAnswer(r, "POST"); err == nil {
					refused <- a
				}
			}()
		}
		// Four MiB of an address hold no more than four bodies of a MiB.
		for range 36 {
			refusedWith(t, <-refused, "--anonymous-bytes-in-flight")
		}
		if n := row.node.budget.anonymous.Load(); n > 4<<20 {
			t.Errorf("%s: %d bytes of anonymous callers", name, n)
		}
		if got := row.node.do(t, "POST", largePath, body); got.StatusCode != 201 {
			t.Errorf("%s: a known caller: %d %s", name, got.StatusCode, got.body)
		}
	}
}

// Strangers who hold all the bytes of callers without a valid credential keep no known
// caller from a node that has not seen the credential yet.
func TestBudget_KnownWhereTheWorkspaceIsServed(t *testing.T) {
	t.Parallel()
	limits := func(c *Config) {
		c.ReadTimeout = time.Minute
		c.Limits = Limits{Bytes: 256 << 20, AnonymousBytes: 1 << 20}
	}
	a := newAtlas("b")
	entry, owner := a.join(t, "a", limits), a.join(t, "b", limits)
	var calls atomic.Int32
	owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		calls.Add(1)
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`)}, nil
	})
	for entry.budget.anonymous.Load() < 900<<10 {
		before := entry.budget.anonymous.Load()
		c, _ := dial(t, entry.addr)
		if _, err := io.WriteString(c, "POST /open HTTP/1.1\r\nHost: h\r\nContent-Length: 120000\r\n\r\n"+strings.Repeat("x", 100_000)); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "a body in flight", func() bool { return entry.budget.anonymous.Load() >= before+100_000 })
	}
	body := largeBody()
	for _, wrong := range [...]string{"swy_bad", token} { // it must not be the bad one that is known
		head := strings.Replace(largeHead(body), token, wrong, 1)
		got := entry.raw(t, 1, head+body)[0]
		if wrong == token && (got.StatusCode != 201 || calls.Load() != 1) {
			t.Errorf("a known caller: %d %s after %d calls", got.StatusCode, got.body, calls.Load())
		}
		if wrong != token {
			refusedWith(t, got, "--anonymous-bytes-in-flight")
		}
	}
	// The question has no body, also where the request has one that nobody needs.
	large := strings.Repeat("x", 20_000)
	for range 2 { // over one connection between the nodes
		got := entry.raw(t, 1, strings.Replace("GET "+things+"/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 20000\r\n\r\n", workspaceID, strings.Replace(workspaceID, "0193", "0194", 1), 1)+large)[0]
		if got.StatusCode != 201 {
			t.Errorf("a GET with a body: %d %s", got.StatusCode, got.body)
		}
	}
	// A client that says to be another node is not believed.
	if got := owner.raw(t, 1, strings.Replace(largeHead(body), "Host: h", "Host: h\r\nSwitchyard-Introduces: 1", 1)+body)[0]; got.StatusCode != 201 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// The body of an operation that writes more than others and a message to the tools count twice, and
// a body of more than 256 KiB three times.
func TestBudget_BodiesThatWriteMuch(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits = Limits{WorkspaceBytes: 300 << 10} })
	bulky := strings.Replace(largePath, "large", "bulky", 1)
	of := func(kib int) string { return largeBody()[:20] + strings.Repeat("x", kib<<10) + `"}` }
	if got := b.do(t, "POST", largePath, of(200)); got.StatusCode/100 != 2 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	refusedWith(t, b.do(t, "POST", bulky, of(200)), "--workspace-bytes-in-flight")
	if got := b.do(t, "POST", bulky, of(100)); got.StatusCode/100 != 2 {
		t.Errorf("a smaller one: %d %s", got.StatusCode, got.body)
	}
	refusedWith(t, b.do(t, "POST", largePath, largeBody()), "--workspace-bytes-in-flight")
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{}`)}, nil
	}))
	for kib, status := range map[int]int{100: 200, 200: 503} {
		if got := b.do(t, "POST", sessionTools, callOf("log", `{"message":"`+strings.Repeat("x", kib<<10)+`"}`)); got.StatusCode != status {
			t.Errorf("a message of %d KiB: %d %.200s", kib, got.StatusCode, got.body)
		}
	}
	// A body that fits by itself is let in, and takes all there is.
	var charged atomic.Int64
	b = setup(t, func(c *Config) { c.Limits = Limits{WorkspaceBytes: 2 << 20} })
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		charged.Store(b.budget.all.Load())
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`)}, nil
	})
	if got := b.do(t, "POST", largePath, largeBody()); got.StatusCode/100 != 2 || charged.Load() != 2<<20 {
		t.Errorf("%d %s, charged %d", got.StatusCode, got.body, charged.Load())
	}
	half := of(500)
	if got := b.do(t, "POST", largePath, half); got.StatusCode/100 != 2 || charged.Load() != int64(3*(len(half)+1)) {
		t.Errorf("%d %s, charged %d for %d", got.StatusCode, got.body, charged.Load(), len(half))
	}
	// A large body of a request that may wait is charged as it arrives.
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		charged.Store(b.budget.all.Load())
		return tracker.Reply{Body: []byte(`{}`)}, nil
	}))
	if got := b.do(t, "POST", sessionTools, callOf("log", `{"message":"`+strings.Repeat("x", 500<<10)+`"}`)); got.StatusCode != 200 || charged.Load() < 1500<<10 {
		t.Errorf("a message: %d %.200s, charged %d", got.StatusCode, got.body, charged.Load())
	}
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A parked request's body stays charged while it waits.
func TestBudget_Parked(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits = Limits{WorkspaceBytes: 1 << 20} })
	all := sleepy(b, 0)
	c, r := dial(t, b.addr)
	body := `{"wait":5` + strings.Repeat(" ", 100<<10) + "}"
	if _, err := io.WriteString(c, strings.Replace(takeRequest("p"), "Content-Length: 10\r\n\r\n{\"wait\":5}", "Content-Length: "+itoa(len(body))+"\r\n\r\n"+body, 1)); err != nil {
		t.Fatal(err)
	}
	w := <-all
	wake := <-w.armed
	if n := b.budget.all.Load(); n < 100<<10 {
		t.Errorf("%d bytes in flight", n)
	}
	wake()
	wantBody(t, r, 200, `{"id":"p"}`)
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A large message for which there was no room while nobody served its workspace is refused for
// that. The rest of it must not pass for the whole.
func TestBudget_BodyRefusedWhileNobodyServes(t *testing.T) {
	t.Parallel()
	a := newAtlas("")
	entry := a.join(t, "a", func(c *Config) { c.Limits = Limits{AnonymousBytes: freeBytes + 1} })
	entry.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { panic("not run") }))
	time.AfterFunc(0, func() {
		testkit.Eventually(t, "the request to look for its owner", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.looks > 0 })
		a.move("a")
	})
	message := callOf("log", `{"message":"`+strings.Repeat("x", 3*freeBytes)+`"}`)
	refusedWith(t, entry.do(t, "POST", sessionTools, message), "--anonymous-bytes-in-flight")
}

func BenchmarkBudget(b *testing.B) {
	limits := &Limits{Bytes: 1 << 30, WorkspaceBytes: 1 << 28}
	budget := newBudget(limits, func(string) {})
	c := &conn{}
	to := account{kind: workspaceAccount, workspace: [16]byte{1}, address: netip.Addr{}}
	b.ReportAllocs()
	for b.Loop() {
		if err := budget.raise(c, to, account{}, answerPart, 64<<10, false); err != nil {
			b.Fatal(err)
		}
		budget.release(c, answerPart)
	}
}
