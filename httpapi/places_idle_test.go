package httpapi

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// A connection whose client still takes its answer is not idle, however long ago the request began.
func TestPlaces_AnAnswerOnItsWayIsNotIdle(t *testing.T) {
	t.Parallel()
	const most, size = 20, 8 << 20
	b := setup(t, func(c *Config) {
		c.MaxConnections, c.Limits.IdleConnections, c.WriteTimeout = 2000, most, time.Hour
	})
	var asked atomic.Bool
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		if !asked.Swap(true) {
			return tracker.Reply{Body: make([]byte, size)}, nil
		}
		return tracker.Reply{Body: []byte(`{}`)}, nil
	})
	slow, r := dial(t, b.addr)
	if _, err := io.WriteString(slow, "GET "+things+"/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Peek(1); err != nil {
		t.Fatal(err)
	}
	open := func() {
		c, r := dial(t, b.addr)
		if a := ask(t, c, r, things, token); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	for range most {
		open()
	}
	testkit.Eventually(t, "idle connections to be closed", func() bool {
		open()
		return b.refusals(t, boundIdle) > 0
	})
	if a, err := readAnswer(r, "GET"); err != nil || len(a.body) != size {
		t.Errorf("of the answer on its way: %v", err)
	}
}

// However many new connections without a credential are idle, they do not take the place of those of known callers.
func TestPlaces_NewStrangersGiveWay(t *testing.T) {
	t.Parallel()
	const most = 20
	b := setup(t, func(c *Config) { c.MaxConnections, c.Limits.IdleConnections = 2000, most })
	known, knownReader := dial(t, b.addr)
	if a := ask(t, known, knownReader, things, token); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for range most { // all within credentialWait
		c, r := dial(t, b.addr)
		if a := ask(t, c, r, "/healthz", ""); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	testkit.Eventually(t, "idle connections to be closed", func() bool {
		dial(t, b.addr)
		return b.refusals(t, boundIdle) > 0
	})
	if a := ask(t, known, knownReader, things, token); a.StatusCode != 200 {
		t.Errorf("the connection of a known caller: %d %s", a.StatusCode, a.body)
	}
}
