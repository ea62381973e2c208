package httpapi

import (
	"io"
	"testing"

	"switchyard/internal/testkit"
)

// A connection to another node has no buffers while a request waits there, nor while it is idle. Answers come through
// all the same.
func TestForward_ConnectionsThatWaitHaveNoBuffers(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	waits := sleepy(owner, 0)
	get := func() {
		t.Helper()
		if got := entry.do(t, "GET", things+"/1", ""); got.StatusCode != 201 || got.body != `{"id":"b"}` {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
		entry.pools.mu.Lock()
		defer entry.pools.mu.Unlock()
		if idle := entry.pools.nodes["b"]; len(idle) != 1 || idle[0].r != nil {
			t.Errorf("%d connections are idle, or one has a buffer", len(idle))
		}
	}
	get()
	for _, request := range []string{takeRequest("mine"), watchRequest} {
		c, r := dial(t, entry.addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		w := <-waits
		w.answers(`{"id":"mine"}`, nil)
		wake := <-w.armed
		testkit.Eventually(t, "the request waits", func() bool { return entry.leavers.count() == 1 })
		entry.leavers.mu.Lock()
		for peer := range entry.leavers.waiting {
			if peer.r != nil {
				t.Error("the connection has a buffer")
			}
		}
		entry.leavers.mu.Unlock()
		wake()
		wantBody(t, r, 200, `{"id":"mine"}`)
		get()
	}
	if dials := a.dialed("b"); dials != 1 {
		t.Errorf("%d connections to the owner", dials)
	}
}
