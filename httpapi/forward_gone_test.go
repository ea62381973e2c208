package httpapi

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// toolRequest is a message to the tools that asks to wait.
func toolRequest() string {
	message := callOf("read_session", `{"since":"01931f6e-7a3c-7def-8123-456789abcd00","wait":20}`)
	return "POST " + sessionTools + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + strconv.Itoa(len(message)) + "\r\n\r\n" + message
}

// watchRequest is a poll that asks to wait.
const watchRequest = "POST " + watch + "?wait=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 0\r\n\r\n"

func (l *leavers) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// anyGone reports whether the client of a request that waits has left.
func (l *leavers) anyGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, client := range l.waiting {
		if client == nil || client.gone() {
			return true
		}
	}
	return false
}

// dialed returns how many connections were opened to a node.
func (a *atlas) dialed(node string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dials[node]
}

// A client waits by way of a node that does not serve its workspace, and leaves. The node that serves it
// learns of that, and the node between keeps nothing of the request.
func TestGone_ForwardedRequestsOfClientsThatLeave(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"a claim": takeRequest("mine"), "a claim with a key": strings.Replace(takeRequest("mine"), "\r\n", "\r\nIdempotency-Key: k\r\n", 1),
		"a poll": watchRequest, "a tool": toolRequest(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry, owner := a.join(t, "a", func(c *Config) { c.Limits.AddressWaiting = 10 }), a.join(t, "b")
			owner.engine.set(scoped(nil))
			waits := sleepy(owner, 0)
			stays, answers := dial(t, entry.addr)
			leaves, _ := dial(t, entry.addr)
			var all [2]*sleeper
			for i, c := range []net.Conn{leaves, stays} {
				if _, err := io.WriteString(c, request); err != nil {
					t.Fatal(err)
				}
				all[i] = <-waits
			}
			wakes := [2]func(){<-all[0].armed, <-all[1].armed}
			if all[0].req.Gone() || all[1].req.Gone() {
				t.Error("a client that waits is gone")
			}
			_ = leaves.Close()
			testkit.Eventually(t, "the owner knows that the client is gone", all[0].req.Gone)
			testkit.Eventually(t, "the other node has one request that waits", func() bool { return entry.waitingCount() == 1 && entry.connections() == 1 })
			all[0].answers("", tracker.NotApplied("The client has closed the connection."))
			wakes[0]()
			if all[1].req.Gone() {
				t.Error("the client that stays is gone")
			}
			wakes[1]()
			wantBody(t, answers, 200, "")
			testkit.Eventually(t, "no request waits", func() bool { return entry.waitingCount() == 0 && entry.leavers.count() == 0 })
			if dials := a.dialed("b"); dials != 2 {
				t.Errorf("%d connections to the owner: the request was repeated", dials)
			}
		})
	}
}

// Requests on one connection follow each other, also behind one that waited for longer than it takes to
// look for clients that have left, and one that was sent while the other waited.
func TestGone_ClientsThatStayGoOn(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	waits := sleepy(owner, 0)
	c, r := dial(t, entry.addr)
	for range 2 {
		if _, err := io.WriteString(c, takeRequest("first")); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"first", "second"} {
			w := <-waits
			wake := <-w.armed
			if id == "first" {
				if _, err := io.WriteString(c, takeRequest("second")); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Eventually(t, "the other node has the request among those that wait", func() bool { return entry.leavers.count() == 1 })
			entry.leavers.look()
			if w.req.Gone() {
				t.Error("the client is gone")
			}
			wake()
			wantBody(t, r, 200, `{"id":"`+id+`"}`)
		}
	}
	if dials := a.dialed("b"); dials != 1 {
		t.Errorf("%d connections to the owner", dials)
	}
}

// A client leaves before its request is lost with the owner of its workspace: the next owner is not asked.
func TestGone_BeforeTheOwnerIsLost(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	next := a.join(t, "c")
	c, _ := dial(t, entry.addr)
	asked, lost := make(chan struct{}), make(chan struct{})
	a.haunt(t, "b", func(peer net.Conn) {
		readOne(peer)
		close(asked)
		<-lost
	})
	if _, err := io.WriteString(c, strings.Replace(takeRequest("mine"), "\r\n", "\r\nIdempotency-Key: k\r\n", 1)); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = c.Close()
	testkit.Eventually(t, "the node can tell that the client is gone", func() bool { return entry.leavers.anyGone() || entry.connections() == 0 })
	a.move("c")
	close(lost)
	testkit.Eventually(t, "the connection ends", func() bool { return entry.connections() == 0 })
	if _, _, calls := next.engine.seen(); calls != 0 {
		t.Errorf("the next owner was asked %d times", calls)
	}
}

// tracked is a connection with TLS below its own type, as the cluster gives those of nodes.
type tracked struct{ *tls.Conn }

func (c tracked) SyscallConn() (syscall.RawConn, error) {
	return c.NetConn().(syscall.Conn).SyscallConn()
}

// A node ends a connection with bytes that nobody reads while a request waits.
func TestGone_NodesThatUseTLS(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the state of a socket with unread bytes")
	}
	pair, roots := certified(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	dialed := make(chan *tls.Conn, 1)
	go func() {
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots})
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	secure := tls.Server(accepted, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	c, node := <-dialed, &conn{Conn: tracked{secure}, peer: true}
	if node.gone() {
		t.Error("the node is gone")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the node is gone", node.gone)
	if _, err := secure.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the look took bytes: %v", err)
	}
}

// A request is abandoned only while it waits: the connection to the owner may have the next one by then.
func TestGone_AbandonsRequestsThatWait(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	var request fasthttp.Request
	var response fasthttp.Response
	var l leavers
	w := waitingPeer{new(conn), newPeerConn(here)}
	l.enter(w)
	l.abandon(w)
	if err := w.peer.take(&request, &response); !errors.Is(err, fasthttp.ErrTimeout) {
		t.Errorf("an abandoned request ends with %v", err)
	}
	if !l.leave(w.peer) {
		t.Error("the request does not know that it was abandoned")
	}
	next := waitingPeer{new(conn), newPeerConn(here)}
	if err := here.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, found := range []waitingPeer{w, {w.client, next.peer}} { // the looks that found them gone come late
		l.enter(next)
		l.abandon(found)
		if l.leave(next.peer) {
			t.Error("the next request was abandoned")
		}
		l.abandon(found)
	}
	go func() { _, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") }()
	if err := next.peer.take(&request, &response); err != nil {
		t.Errorf("the request after them ends with %v", err)
	}
}

// BenchmarkGone looks once for those of 10,000 clients that have left.
func BenchmarkGone(b *testing.B) {
	const clients, conns = 10_000, 1_000
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	var l leavers
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range conns {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		accepted, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, c, accepted)
		client := &conn{Conn: accepted}
		for range clients / conns { // as many system calls as with a connection for each
			l.enter(waitingPeer{client, &peerConn{conn: c}})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		l.look()
	}
}

// BenchmarkGone_Enter is the cost of a request that asks to wait and is answered at once.
func BenchmarkGone_Enter(b *testing.B) {
	var l leavers
	w := waitingPeer{new(conn), new(peerConn)}
	b.ReportAllocs()
	for b.Loop() {
		l.enter(w)
		l.leave(w.peer)
	}
}
