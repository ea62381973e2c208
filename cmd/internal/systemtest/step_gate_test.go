package systemtest

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/testkit"
)

// stepGate is the address of the service for the example's agents. It forwards their requests, and holds
// those that log a certain step of the work. The agents then stay in the middle of their work until the
// test has looked at it, on fast and on slow machines.
type stepGate struct {
	url     string
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	step    string          // requests with this text are held; "" holds none
	held    map[string]bool // sessions with such a request
	changed chan struct{}   // closed and replaced when step changes
}

// newStepGate listens for the agents of the service at a URL.
func newStepGate(t *testing.T, service string) *stepGate {
	t.Helper()
	to, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	g := &stepGate{held: map[string]bool{}, changed: make(chan struct{})}
	g.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Accept-Encoding") // so that answers are decompressed here, and held against the description
		},
		ErrorLog: log.New(io.Discard, "", 0), // agents that are killed leave requests behind
	}
	listener := httptest.NewServer(g)
	t.Cleanup(func() {
		g.hold("")
		listener.CloseClientConnections()
		listener.Close()
	})
	g.url = listener.URL
	return g
}

// ServeHTTP implements http.Handler.
func (g *stepGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if lane, logs := strings.CutSuffix(r.URL.Path, "/log"); logs {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || !g.pass(r.Context(), path.Base(lane), body) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	g.forward.ServeHTTP(w, r)
}

// pass returns once the request of a session is not held any more. It reports whether the agent still waits
// for the answer.
func (g *stepGate) pass(ctx context.Context, session string, body []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ctx.Err() == nil && g.step != "" && bytes.Contains(body, []byte(g.step)) {
		g.held[session] = true
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
	delete(g.held, session)
	return ctx.Err() == nil
}

// hold holds the requests that log a step from now on, and forwards the others.
func (g *stepGate) hold(step string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step = step
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until requests of n sessions are held.
func (g *stepGate) await(ctx context.Context, t *testing.T, what string, n int) {
	t.Helper()
	testkit.Await(ctx, t, what, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.held) == n
	})
}

// awaitSession waits until the request of a session is held or, if it is to be gone, is not.
func (g *stepGate) awaitSession(ctx context.Context, t *testing.T, what, session string, held bool) {
	t.Helper()
	testkit.Await(ctx, t, what, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.held[session] == held
	})
}
