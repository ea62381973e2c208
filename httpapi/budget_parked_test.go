package httpapi

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// A request that waits is charged with its headers and with what came behind it, until it has its answer or
// its client leaves.
func TestBudget_RequestsThatWait(t *testing.T) {
	t.Parallel()
	const filler = 10 << 10
	b := setup(t, func(c *Config) { c.Limits = Limits{Bytes: 1 << 20, WorkspaceBytes: 5 * filler} })
	all := sleepy(b, 0)
	held := func() int64 { return b.budget.all.Load() }
	send := func(filler int, behind string) net.Conn {
		t.Helper()
		return sendWaiting(t, b.addr, filler, behind)
	}
	send(100, "")
	<-(<-all).armed
	if held() != 0 {
		t.Errorf("%d bytes are charged for a small request", held())
	}
	var conns []net.Conn
	var wakes []func()
	for i := range 4 {
		conns = append(conns, send(filler, ""))
		wakes = append(wakes, <-(<-all).armed)
		if at := int64(i + 1); held() < at*filler || held() > at*(filler+1<<10) {
			t.Errorf("%d bytes are charged for %d requests of %d", held(), at, filler)
		}
	}
	c := send(filler, "")
	wantRefusal(t, bufio.NewReader(c), "--workspace-bytes-in-flight")
	(<-all).mustLeave(t)

	wantGivenUp(t, held, wakes[:2], conns)
	for i, wake := range wakes[2:] { // left
		_ = conns[2+i].Close()
		wake()
	}
	testkit.Eventually(t, "nothing in flight", func() bool { return held() == 0 })

	next := "GET " + things + "/1 HTTP/1.1\r\nHost: x\r\nX-Filler: " + strings.Repeat("x", filler/2) + "\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	c = send(0, next)
	wake := <-(<-all).armed
	if held() < filler/2 {
		t.Errorf("%d bytes are charged for a request with %d behind it", held(), len(next))
	}
	wake()
	r := bufio.NewReader(c)
	wantBody(t, r, 200, "")
	wantBody(t, r, 200, `{"id":"x"}`)
	testkit.Eventually(t, "nothing in flight", func() bool { return held() == 0 })
}

// The bytes that came behind a request that waits find no room: it is refused, and the request behind it is served.
func TestBudget_BehindARequestThatWaits(t *testing.T) {
	t.Parallel()
	const filler = 10 << 10
	b := setup(t, func(c *Config) { c.Limits = Limits{Bytes: 1 << 20, WorkspaceBytes: filler} })
	all := sleepy(b, 0)
	next := "GET " + things + "/1 HTTP/1.1\r\nHost: x\r\nX-Filler: " + strings.Repeat("x", filler) + "\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	r := bufio.NewReader(sendWaiting(t, b.addr, 0, next))
	wantRefusal(t, r, "--workspace-bytes-in-flight")
	(<-all).mustLeave(t)
	wantBody(t, r, 200, `{"id":"x"}`)
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A request that waits at another node is charged by this node, too: to its workspace, until it has its answer or its
// client leaves.
func TestBudget_RequestsThatWaitAtAnotherNode(t *testing.T) {
	t.Parallel()
	const filler, each = 10 << 10, headerCopies * 10 << 10
	a := newAtlas("b")
	entry := a.join(t, "a", func(c *Config) { c.Limits = Limits{Bytes: 4 << 20, WorkspaceBytes: 5 * each} })
	all := sleepy(a.join(t, "b"), 0)
	held := func() int64 { return entry.budget.all.Load() }
	sendWaiting(t, entry.addr, 100, "")
	<-(<-all).armed
	if held() != 0 {
		t.Errorf("%d bytes are charged for a small request", held())
	}
	var conns []net.Conn
	var wakes []func()
	for i := range 4 {
		conns = append(conns, sendWaiting(t, entry.addr, filler, ""))
		wakes = append(wakes, <-(<-all).armed)
		if at := int64(i + 1); held() < at*each || held() > at*(each+headerCopies<<10) {
			t.Errorf("%d bytes are charged for %d requests with headers of %d", held(), at, filler)
		}
	}
	if n := entry.budget.anonymous.Load(); n != 0 {
		t.Errorf("%d bytes of a known caller are charged to nobody", n)
	}
	wantRefusal(t, bufio.NewReader(sendWaiting(t, entry.addr, filler, "")), "--workspace-bytes-in-flight")

	wantGivenUp(t, held, wakes[:2], conns)
	for _, c := range conns[2:] { // left
		_ = c.Close()
	}
	testkit.Eventually(t, "nothing in flight", func() bool { return held() == 0 })
	if len(all) != 0 {
		t.Error("the other node was asked to let a request wait that was refused")
	}
}

// sendWaiting sends a request that asks to wait, with a header of some bytes and with what comes behind it.
func sendWaiting(t *testing.T, addr string, filler int, behind string) net.Conn {
	t.Helper()
	c, _ := dial(t, addr)
	request := "POST " + take + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 10\r\nX-Filler: " + strings.Repeat("x", filler) + "\r\n\r\n{\"wait\":5}"
	if _, err := io.WriteString(c, request+behind); err != nil {
		t.Fatal(err)
	}
	return c
}

// wantGivenUp wakes requests that wait, reads their answers, and waits after each until fewer bytes are held.
func wantGivenUp(t *testing.T, held func() int64, wakes []func(), conns []net.Conn) {
	t.Helper()
	for i, wake := range wakes {
		before := held()
		wake()
		wantBody(t, bufio.NewReader(conns[i]), 200, "")
		testkit.Eventually(t, "the request is given up", func() bool { return held() < before })
	}
}

func wantRefusal(t *testing.T, r *bufio.Reader, flag string) {
	t.Helper()
	a, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, a, flag)
}

// mustLeave waits until the request was given up.
func (w *sleeper) mustLeave(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the request leaves", w.hasLeft)
}
