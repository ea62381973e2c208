package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bubble is a server whose clients are at the other ends of pipes, in a bubble of synctest.
type bubble struct {
	*Server
	fake  *fakeEngine
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// inBubble runs a test with a server in a bubble.
func inBubble(t *testing.T, limits Limits, f func(t *testing.T, b *bubble)) {
	t.Helper()
	// fasthttp and the packages of the server start goroutines that never end with the first request: not in the bubble.
	if a := setup(t).do(t, "POST", things, thingBody); a.StatusCode/100 != 2 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeEngine{}
		s, err := newServer(Config{Engine: engine, Logger: slog.New(slog.DiscardHandler), Limits: limits}, fakeRoutes())
		if err != nil {
			t.Fatal(err)
		}
		b := &bubble{Server: s, fake: engine, conns: make(chan net.Conn), ended: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- s.Serve(b) }()
		f(t, b)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // for goroutines of fasthttp that look now and then
	})
}

// Accept implements net.Listener.
func (b *bubble) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *bubble) Close() error {
	b.once.Do(func() { close(b.ended) })
	return nil
}

// Addr implements net.Listener.
func (b *bubble) Addr() net.Addr { return &net.TCPAddr{} }

// post sends a body of size bytes to a workspace, and returns the answer and how long it took to come. Of the body it
// sends a part at once and the rest at rate bytes a second.
func (b *bubble) post(workspace byte, size, part, rate int) (answer, time.Duration) {
	here, there := net.Pipe()
	began := time.Now()
	b.conns <- there
	defer func() { _ = here.Close() }()
	go func() {
		path := strings.Replace(largePath, workspaceID, fmt.Sprintf("01930000-0000-7000-8000-0000000000%02x", workspace), 1)
		head := "POST " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n"
		if size < 0 {
			head += "Transfer-Encoding: chunked\r\n\r\n"
		} else {
			head += fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
		}
		body := `{"title":"t","x":"` + strings.Repeat("x", max(size, -size)-len(`{"title":"t","x":""}`)) + `"}`
		send := func(text string) bool {
			if size < 0 {
				text = fmt.Sprintf("%x\r\n%s\r\n", len(text), text)
			}
			_, err := io.WriteString(here, text)
			return err == nil
		}
		if _, err := io.WriteString(here, head); err != nil || part > 0 && !send(body[:part]) {
			return
		}
		for body = body[part:]; len(body) > 0 && rate > 0; {
			time.Sleep(100 * time.Millisecond)
			n := min(len(body), rate/10)
			if !send(body[:n]) {
				return
			}
			body = body[n:]
		}
		if len(body) == 0 && size < 0 {
			_, _ = io.WriteString(here, "0\r\n\r\n")
		}
	}()
	r, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil {
		return answer{body: err.Error()}, time.Since(began)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		text = []byte(err.Error())
	}
	return answer{Response: r, body: string(text)}, time.Since(began)
}

// A body may arrive as long as it comes at 64 KiB a second, beyond the 15 seconds of any request.
func TestArrival_AtALeastSpeed(t *testing.T) {
	for name, row := range map[string]struct {
		size, part, rate, status int
		least, most              time.Duration
	}{
		"steady":                {1 << 20, 0, 50_000, 200, 20 * time.Second, 22 * time.Second},
		"steady, in chunks":     {-1 << 20, 0, 50_000, 200, 20 * time.Second, 22 * time.Second},
		"little, slowly":        {10_000, 0, 1000, 200, 9 * time.Second, 11 * time.Second},
		"much, at once":         {1 << 20, 1 << 20, 0, 200, 0, time.Second},
		"slow":                  {1 << 20, 0, 20_000, 408, 20 * time.Second, 23 * time.Second},
		"slow, in chunks":       {-1 << 20, 0, 20_000, 408, 20 * time.Second, 23 * time.Second},
		"dripping":              {1 << 20, 0, 10, 408, 15 * time.Second, 16 * time.Second},
		"nothing":               {1 << 20, 0, 0, 408, 15 * time.Second, 16 * time.Second},
		"half of it":            {1 << 20, 1 << 19, 0, 408, 22 * time.Second, 24 * time.Second},
		"a bit, and then slow":  {1 << 20, 1 << 19, 1000, 408, 22 * time.Second, 24 * time.Second},
		"a small one, stalling": {10_000, 5000, 0, 408, 15 * time.Second, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, Limits{}, func(t *testing.T, b *bubble) {
				a, took := b.post(1, row.size, row.part, row.rate)
				if a.Response == nil || a.StatusCode != row.status || took < row.least || took > row.most {
					t.Errorf("%v after %v: %s", a.Response, took, a.body)
				}
				if row.status == 408 && !strings.Contains(a.body, "64 KiB a second") {
					t.Errorf("%s, want the speed in the hint", a.body)
				}
			})
		})
	}
}

// A body that comes too slowly is cut off when another workspace, which holds less, waits for its bytes, and only then.
func TestArrival_GivesWayToOthers(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // of which there is room for four
	inBubble(t, Limits{Bytes: 13 << 20}, func(t *testing.T, b *bubble) {
		type result struct {
			answer
			took time.Duration
		}
		slow := make(chan result, 10)
		send := func(workspace byte, size, rate int) {
			go func() {
				a, took := b.post(workspace, size, 30_000, rate)
				slow <- result{a, took}
			}()
			synctest.Wait()
		}
		for i := range byte(2) {
			send(2*i, size, 0) // they stall
			send(2*i+1, size, 50_000)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if len(slow) > 0 {
			t.Fatalf("nobody waits, and one has its answer: %s", (<-slow).body)
		}
		// The bytes of a single one are enough.
		if a, took := b.post(9, size, size, 0); a.StatusCode != 200 || took > 2*time.Second {
			t.Errorf("another: %d %s after %v", a.StatusCode, a.body, took)
		}
		synctest.Wait()
		if len(slow) != 1 {
			t.Fatalf("%d were cut off", len(slow))
		}
		if a := <-slow; a.StatusCode != 408 || !strings.Contains(a.body, "within 5 seconds") || !strings.Contains(a.body, boundBytes) {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		for range 3 {
			if a := <-slow; a.StatusCode == 408 && strings.Contains(a.body, boundBytes) || a.took < 15*time.Second {
				t.Errorf("nobody waits: %d %s after %v", a.StatusCode, a.body, a.took)
			}
		}

		// Callers with many stalled bodies, which come again and again, keep nobody out.
		ended := make(chan struct{})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for {
					b.post(byte(i%4), size, 30_000, 0)
					select {
					case <-ended:
						return
					default:
					}
				}
			})
		}
		time.Sleep(time.Minute)
		for range 10 {
			if a, took := b.post(9, size/2, size/2, 0); a.StatusCode != 200 || took > 6*time.Second {
				t.Errorf("another: %d %s after %v", a.StatusCode, a.body, took)
			}
		}
		close(ended)
		all.Wait()
		if n := b.budget.all.Load(); n != 0 || len(b.budget.by) != 0 || len(b.budget.waiting) != 0 {
			t.Errorf("%d bytes, %v, %d lines", n, b.budget.by, len(b.budget.waiting))
		}
	})
}
