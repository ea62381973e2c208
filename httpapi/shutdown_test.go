package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

func TestServer_ShutdownFinishesWhatIsInProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		close(entered)
		<-leave
		return tracker.Reply{Body: []byte(`{"done":true}`)}, nil
	})
	silent, err := net.Dial("tcp", b.addr) // says nothing, and must not hold things up
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, postHead+"Content-Length: 13\r\n\r\n{\"title\":\"t\"}"); err != nil {
		t.Fatal(err)
	}
	<-entered
	before := serverOf(b.addr)
	down := make(chan error, 1)
	go func() { down <- b.Shutdown(context.Background()) }()
	if err := <-b.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	late := serverOf(b.addr)
	close(leave)
	a, err := readAnswer(bufio.NewReader(c), "POST")
	if err != nil || a.body != `{"done":true}` || !a.Close {
		t.Fatalf("%v %+v", err, a)
	}
	if own, _, _ := strings.Cut(a.Header.Get("X-Request-Id"), "-"); own != before || own == late {
		t.Errorf("the server %q answered as %q before, and answers as %q", own, before, late)
	}
	select {
	case err := <-down:
		if err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Shutdown does not return")
	}
}

// Clients that send a request slowly, or a part of it, don't hold a shutdown up. A request that has
// arrived is answered.
func TestServer_ShutdownWaitsForNoSlowClient(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.ReadTimeout, c.ReceiveGrace = time.Hour, 50*time.Millisecond })
	entered, leave := make(chan struct{}), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		close(entered)
		<-leave
		return tracker.Reply{Body: []byte(`{"done":true}`)}, nil
	})
	send := func(text string) net.Conn {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	working := send(postHead + "Content-Length: 13\r\n\r\n{\"title\":\"t\"}")
	<-entered
	slow := map[string]net.Conn{
		"half a header":     send("GET /healthz HTTP/1.1\r\nHos"),
		"half a body":       send(postHead + "Content-Length: 13\r\n\r\n{\"tit"),
		"half a large body": send(postHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 50_000)),
		"half a chunk":      send(postHead + "Transfer-Encoding: chunked\r\n\r\nff\r\n{"),
	}
	testkit.Eventually(t, "all have come", func() bool { return b.heard() == 1+len(slow) })
	down := make(chan error, 1)
	go func() { down <- b.Shutdown(t.Context()) }()
	for name, c := range slow {
		a, err := readAnswer(bufio.NewReader(c), "POST")
		if err != nil || a.StatusCode != 408 || !a.Close {
			t.Errorf("%s: %v %+v", name, err, a)
		}
	}
	close(leave)
	a, err := readAnswer(bufio.NewReader(working), "POST")
	if err != nil || a.body != `{"done":true}` || !a.Close {
		t.Errorf("%v %+v", err, a)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// heard returns the number of connections by which something has come.
func (b *bundle) heard() (n int) {
	for _, l := range b.ears() {
		for _, c := range l.all() {
			if c.heard.Load() {
				n++
			}
		}
	}
	return n
}

// ears returns the listeners of the server.
func (b *bundle) ears() []*listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.listeners)
}

// serverOf returns the beginning of the request ids of the server at an address; empty if none
// answers. It may be that of another test, which has got the port.
func serverOf(addr string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return ""
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(20*time.Second)) != nil {
		return ""
	}
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return ""
	}
	a, err := readAnswer(bufio.NewReader(c), "GET")
	if err != nil {
		return ""
	}
	id, _, _ := strings.Cut(a.Header.Get("X-Request-Id"), "-")
	return id
}

func TestServer_ShutdownIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		close(entered)
		<-leave
		return tracker.Reply{}, nil
	})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, postHead+"Content-Length: 13\r\n\r\n{\"title\":\"t\"}"); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
	close(leave)
}
