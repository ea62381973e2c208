package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// sleeper is a request that waits until the test wakes it.
type sleeper struct {
	req   *tracker.Request
	armed chan func()

	mu    sync.Mutex
	body  string // of the answer; empty: it has the request's id
	err   error  // instead of the answer
	looks int    // before there is an answer
	left  bool
}

func (w *sleeper) Arm(wake func()) { w.armed <- wake }

func (w *sleeper) Resume() (tracker.Reply, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks--; w.looks >= 0 {
		return tracker.Reply{}, true, nil
	}
	w.left = true
	if w.err != nil {
		return tracker.Reply{}, false, w.err
	}
	if w.body != "" {
		return tracker.Reply{Body: []byte(w.body)}, false, nil
	}
	return tracker.Reply{Body: []byte(`{"id":"` + w.req.ID + `"}`)}, false, nil
}

func (w *sleeper) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = true
}

// answers sets the outcome of the request.
func (w *sleeper) answers(body string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body, w.err = body, err
}

func (w *sleeper) hasLeft() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// sleepy has the engine let each long-poll request wait, looks times after the first.
func sleepy(b *bundle, looks int) <-chan *sleeper {
	all := make(chan *sleeper, 100)
	b.engine.mu.Lock()
	defer b.engine.mu.Unlock()
	b.engine.waiting = func(req *tracker.Request) tracker.Waiting {
		w := &sleeper{req: req, armed: make(chan func(), 300), looks: looks}
		all <- w
		return w
	}
	return all
}

func takeRequest(id string) string {
	return "POST " + take + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nX-Request-Id: " + id + "\r\nContent-Length: 10\r\n\r\n{\"wait\":5}"
}

func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// wantBody reads one answer, and reports whether the connection ends with it.
func wantBody(t *testing.T, r *bufio.Reader, status int, body string) (closes bool) {
	t.Helper()
	a, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != status || body != "" && a.body != body {
		t.Errorf("got %d %s, want %d %s", a.StatusCode, a.body, status, body)
	}
	return a.Close
}

// A request that waits keeps its place on its connection, and what comes behind it,
// early or late, is served after it.
func TestPark_TheConnectionGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 2)
	c, r := dial(t, b.addr)
	next := "GET " + things + "/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	for round := range 3 {
		id := fmt.Sprint("r", round)
		if _, err := io.WriteString(c, takeRequest(id)+next); err != nil { // one behind it at once
			t.Fatal(err)
		}
		w := <-all
		if round == 1 {
			if _, err := io.WriteString(c, next); err != nil { // and one more while it waits
				t.Fatal(err)
			}
		}
		for range 3 {
			(<-w.armed)()
		}
		wantBody(t, r, 200, `{"id":"`+id+`"}`)
		wantBody(t, r, 200, `{"id":"x"}`)
		if round == 1 {
			wantBody(t, r, 200, `{"id":"x"}`)
		}
		if w.mu.Lock(); !w.left {
			t.Error("it was not left")
		}
		w.mu.Unlock()
	}
	if _, in, calls := b.engine.seen(); calls != 4 || in == nil {
		t.Errorf("%d calls", calls)
	}
}

func TestPark_BodiesInEveryForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	head := " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n"
	for name, request := range map[string]string{
		"chunked":     "POST " + take + head + "Transfer-Encoding: chunked\r\n\r\na\r\n{\"wait\":5}\r\n0\r\n\r\n",
		"none":        "POST " + take + head + "Content-Length: 0\r\n\r\n",
		"not used":    "POST " + watch + "?wait=3" + head + "Content-Length: 7\r\n\r\n{\"a\":1}",
		"large":       "POST " + watch + "?wait=3" + head + "Content-Length: 60000\r\n\r\n{}" + strings.Repeat(" ", 59998),
		"HTTP/1.0":    "POST " + watch + " HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer " + token + "\r\n\r\n",
		"then closed": "POST " + watch + head + "Connection: close\r\n\r\n",
	} {
		c, r := dial(t, b.addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		(<-(<-all).armed)()
		closes := wantBody(t, r, 200, "")
		if want := name == "then closed"; closes != want {
			t.Errorf("%s: closes %t", name, closes)
		} else if want {
			continue
		}
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if wantBody(t, r, 200, "") {
			t.Errorf("%s: the connection does not go on", name)
		}
	}
}

// However fast a request is woken, fasthttp's way of letting go of its connection
// closes nothing.
func TestPark_WokenAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const looks = 200
	all := sleepy(b, looks)
	c, r := dial(t, b.addr)
	for round := range 5 {
		if _, err := io.WriteString(c, takeRequest(fmt.Sprint("r", round))); err != nil {
			t.Fatal(err)
		}
		w := <-all
		for range looks + 1 {
			(<-w.armed)()
		}
		wantBody(t, r, 200, fmt.Sprintf(`{"id":"r%d"}`, round))
	}
}

func TestPark_WokenByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	const n = 50
	var readers []*bufio.Reader
	for i := range n {
		c, r := dial(t, b.addr)
		if _, err := io.WriteString(c, takeRequest(fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	for range n {
		wake := <-(<-all).armed
		go wake()
		go wake() // a second word changes nothing
	}
	for i, r := range readers {
		wantBody(t, r, 200, fmt.Sprintf(`{"id":"r%d"}`, i))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.parked) != 0 {
		t.Errorf("%d are still parked", len(b.parked))
	}
}

func TestPark_ShutdownAnswersWhoeverWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
		t.Fatal(err)
	}
	<-(<-all).armed
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if !wantBody(t, r, 200, `{"id":"mine"}`) {
		t.Error("the connection does not end")
	}
}

// A connection on which a request waited is idle like any other after the answer, and
// is closed at once when the server shuts down.
func TestPark_ShutdownClosesConnectionsThatGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 3)
	var woken sync.WaitGroup
	woken.Go(func() { // as soon as possible: fasthttp may not have let go of the connection yet
		for range parkedOnes {
			w := <-all
			woken.Go(func() {
				for range 4 {
					(<-w.armed)()
				}
			})
		}
	})
	var readers []*bufio.Reader
	for i := range parkedOnes {
		c, r := dial(t, b.addr)
		if _, err := io.WriteString(c, takeRequest(fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	for i, r := range readers {
		wantBody(t, r, 200, fmt.Sprintf(`{"id":"r%d"}`, i))
	}
	woken.Wait()
	down := make(chan error, 1)
	go func() { down <- b.Shutdown(t.Context()) }()
	select {
	case err := <-down:
		if err != nil {
			t.Errorf("shutdown: %v", err)
		}
	case <-time.After(time.Minute): // a connection would stay for the idle time of two minutes
		t.Errorf("shutdown waits for %.0f idle connections", b.connections())
	}
}

// parkedOnes is how many connections have a request that waits, in the test above.
const parkedOnes = 90

func TestPark_WhoeverLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	c, _ := dial(t, b.addr)
	if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
		t.Fatal(err)
	}
	w := <-all
	wake := <-w.armed
	_ = c.Close()
	wake()
	testkit.Eventually(t, "the connection ends", func() bool { return b.connections() == 0 })
}

// A connection fails before its request goes on. No handler sees the request again.
func TestPark_LeavesIfTheConnectionFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	c, _ := dial(t, b.addr)
	if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
		t.Fatal(err)
	}
	w := <-all
	wake := <-w.armed
	for _, l := range b.ears() {
		l.closeAll()
	}
	wake()
	testkit.Eventually(t, "the request leaves", w.hasLeft)
	testkit.Eventually(t, "no request is on its way", func() bool { return b.resuming.Load() == 0 })
}

// The server adds headers to a request that it parks. There is room for them beside the largest headers that a
// request may have.
func TestPark_HasRoomForHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := sleepy(b, 0)
	head := "POST " + take + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 10\r\nX-Filler: "
	send := func(size int) *bufio.Reader {
		c, r := dial(t, b.addr)
		if _, err := io.WriteString(c, head+strings.Repeat("x", size-len(head)-4)+"\r\n\r\n{\"wait\":5}"); err != nil {
			t.Fatal(err)
		}
		return r
	}
	wantBody(t, send(b.cfg.MaxHeaderBytes+1), 431, "") // although nobody wakes it
	r := send(b.cfg.MaxHeaderBytes)
	(<-(<-all).armed)()
	wantBody(t, r, 200, "")
}

// A request that has waited may have an answer of megabytes, which the budget no longer counts once the client
// has it. The connection may go on for days.
func TestPark_AnAnsweredRequestIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sleepers := sleepy(b, 0)
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, takeRequest("one")); err != nil {
		t.Fatal(err)
	}
	answered := func() weak.Pointer[sleeper] {
		w := <-sleepers
		(<-w.armed)()
		return weak.Make(w)
	}()
	if wantBody(t, r, 200, `{"id":"one"}`) {
		t.Fatal("the connection ends")
	}
	testkit.Eventually(t, "the request that waited is given up", func() bool {
		runtime.GC()
		return answered.Value() == nil
	})
	if _, err := io.WriteString(c, takeRequest("two")); err != nil {
		t.Fatal(err)
	}
	(<-(<-sleepers).armed)()
	wantBody(t, r, 200, `{"id":"two"}`)
}
