package httpapi

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// A connection that has nothing to do keeps no large answer, whatever its bytes were made
// for. Not parallel: it measures memory.
func TestAnswers_IdleConnectionsKeepNone(t *testing.T) {
	const size, clients = 4 << 20, 16
	large := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(' ' + random.IntN(95)) // hardly smaller when it is compressed
	}
	answer := func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		return tracker.Reply{Body: append(req.Buf[:0], large...)}, nil
	}
	own := setup(t)
	own.engine.set(answer)
	a := newAtlas("owner")
	a.join(t, "owner").engine.set(answer)
	other := a.join(t, "other")
	for name, c := range map[string]struct {
		of      *bundle
		method  string
		headers string
	}{
		"a query":                           {own, "GET", ""},
		"a compressed query":                {own, "GET", "Accept-Encoding: gzip\r\n"},
		"a change":                          {own, "POST", "Content-Length: 13\r\n"},
		"a compressed change":               {own, "POST", "Content-Length: 13\r\nAccept-Encoding: zstd\r\n"},
		"another node's query":              {other, "GET", ""},
		"another node's change, compressed": {other, "POST", "Content-Length: 13\r\nAccept-Encoding: gzip\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			before := heapInUse()
			request := c.method + " " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n" + c.headers + "\r\n"
			if c.method == "POST" {
				request += `{"title":"t"}`
			}
			for range clients {
				takeAnswer(t, c.of.addr, request)
			}
			var kept int64
			for within := time.Now().Add(10 * time.Second); ; {
				if kept = heapInUse() - before; kept < size*clients/4 || time.Now().After(within) {
					break
				}
			}
			if kept >= size*clients/4 {
				t.Errorf("%d idle connections keep %d bytes", clients, kept)
			}
		})
	}
}

// takeAnswer sends a request on a connection that stays open, and takes the answer.
func takeAnswer(t *testing.T, addr, request string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", a.StatusCode, err)
	}
	_ = a.Body.Close()
}

// heapInUse returns the bytes of the heap that are in use. What pools keep for the next
// cycle of the garbage collector is freed before.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Pages of lists that several connections ask for, beside small answers, are built in memory that was there before,
// also while the garbage collector runs often. Not parallel: it measures memory.
func TestAnswers_PagesTakeNoNewMemory(t *testing.T) {
	const connections, rounds, page = 8, 50, 120 << 10
	body := make([]byte, page)
	s := setup(t)
	s.engine.set(func(req *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		if op == opGet {
			return tracker.Reply{Body: append(req.Buf[:0], '0')}, nil
		}
		return tracker.Reply{Body: append(req.Buf[:0], body...)}, nil
	})
	var clients []func(path string)
	for range connections {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		r := bufio.NewReader(c)
		var answer fasthttp.Response // its memory is used again
		clients = append(clients, func(path string) {
			if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if err := answer.Read(r); err != nil || answer.StatusCode() != http.StatusOK {
				t.Fatalf("%d, %v", answer.StatusCode(), err)
			}
		})
	}
	ask := func(rounds int) {
		for i := range rounds {
			for _, client := range clients {
				client(things)
				client(things + "/01931f6e-7a3c-7def-8123-456789abcd00")
			}
			if i%5 == 0 {
				runtime.GC()
			}
		}
	}
	ask(3)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask(rounds)
	runtime.ReadMemStats(&after)
	// It is 3 KiB, and under the race detector, whose pools drop a part of what they are given, half a page.
	if each := (after.TotalAlloc - before.TotalAlloc) / (connections * rounds); each > page*3/4 {
		t.Errorf("a page of %d bytes and a small answer take %d bytes", page, each)
	}
}

// The bytes of an answer that another node gave count until the client has taken them.
func TestAnswers_OfAnotherNodeAreCharged(t *testing.T) {
	t.Parallel()
	const page = 8 << 20
	a := newAtlas("owner")
	a.join(t, "owner").engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(strings.Repeat("x", page))}, nil
	})
	b := a.join(t, "other", func(c *Config) { c.WriteTimeout = time.Hour })
	c := slow(t, b.addr)
	if _, err := io.WriteString(c, "GET "+things+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the answer in flight", func() bool { return b.budget.all.Load() >= page })
	_ = c.Close()
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A page of a list is built in the buffer of an earlier one. A small answer takes no large buffer.
func TestAnswers_PagesUseBuffersAgain(t *testing.T) {
	t.Parallel()
	s, err := newServer(Config{Engine: benchEngine{}}, fakeRoutes())
	if err != nil {
		t.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	r := &route{}
	send := func(body int) (lent, kept int) {
		x := &exchange{ctx: &ctx, route: r}
		b := s.lend(x)
		s.sendLent(x, append(b, make([]byte, body)...))
		if got := len(ctx.Response.Body()); got != body {
			t.Errorf("%d bytes are sent of %d", got, body)
		}
		s.answers.put(x.answer)
		return cap(b), cap(x.answer.bytes)
	}
	const page = 300 << 10
	again := 0
	for range 50 { // the pool may lose some
		if lent, _ := send(page); lent >= page {
			again++
		}
		send(100) // the last page of a list, for example
	}
	if again == 0 {
		t.Error("no page is built in a buffer of one before")
	}
	for range 50 {
		send(page)
		if _, kept := send(keptBuffer + 1); kept < page {
			t.Errorf("a shorter page behind one of %d bytes is in a buffer of %d", page, kept)
		}
	}
	for _, size := range []int{1000, 20 << 10, 1000} {
		for range 50 {
			send(page)
			if _, kept := send(size); kept > keptBuffer {
				t.Errorf("an answer of %d bytes keeps %d", size, kept)
			}
		}
		for range largeAnswers {
			send(size)
		}
		if lent, _ := send(size); lent > keptBuffer {
			t.Errorf("an answer behind many of %d bytes is built in %d", size, lent)
		}
	}
	for range 50 {
		send(keptAnswer + 1)
		if lent, _ := send(page); lent > keptAnswer {
			t.Errorf("a buffer of %d bytes was kept", lent)
		}
	}
}

// An answer that was built in a large buffer and is sent from a small one counts for the small one.
func TestAnswers_SmallOnesCountAsSuch(t *testing.T) {
	t.Parallel()
	s, err := newServer(Config{Engine: benchEngine{}}, fakeRoutes())
	if err != nil {
		t.Fatal(err)
	}
	x := &exchange{ctx: &fasthttp.RequestCtx{}, route: &route{}, conn: &conn{}, account: workspaceAccount}
	body := make([]byte, 2*freeBytes, keptAnswer)
	if err := s.chargeAnswer(x, body, false); err != nil {
		t.Fatal(err)
	}
	s.sendLent(x, body)
	if n := s.budget.all.Load(); n < int64(len(body)) || n > keptBuffer {
		t.Errorf("%d bytes are counted for an answer of %d", n, len(body))
	}
}
