package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// A node shuts down while requests that it has passed on wait at another node. Each has its answer,
// and the other node learns that nobody waits any more.
func TestStopping_RequestsThatWaitElsewhere(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ request, outcome string }{
		"a claim": {takeRequest("mine"), "unknown"}, // the other node may have made it
		"a poll":  {watchRequest, "not_applied"},
		"a tool":  {toolRequest(), "not_applied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			entry, owner := a.join(t, "a"), a.join(t, "b")
			owner.engine.set(scoped(nil))
			waits := sleepy(owner, 0)
			c, r := dial(t, entry.addr)
			if _, err := io.WriteString(c, row.request); err != nil {
				t.Fatal(err)
			}
			w := <-waits
			wake := <-w.armed
			testkit.Eventually(t, "the request is among those that wait", func() bool { return entry.leavers.count() == 1 })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := entry.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			got, err := readAnswer(r, "POST")
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != 503 || outcomeOf(got) != row.outcome || got.Header.Get("Retry-After") == "" || !got.Close {
				t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
			}
			testkit.Eventually(t, "the owner knows that the client is gone", w.req.Gone)
			wake()
		})
	}
}

// A node hands its workspaces over because it stops. A claim that waited there is refused, since it
// would wait at the next owner. A poll is answered there at once.
func TestStopping_RequestsThatWaitAtTheOwner(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]bool{"a claim": true, "a poll": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("a")
			first, second := a.join(t, "a"), a.join(t, "b")
			waits := sleepy(first, 0)
			c, r := dial(t, first.addr)
			request := watchRequest
			if claims {
				request = takeRequest("mine")
			}
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			w := <-waits
			wake := <-w.armed
			first.Leaving()
			a.move("b")
			w.answers("", tracker.Moved("Another node serves the workspace."))
			wake()
			got, err := readAnswer(r, "POST")
			if err != nil {
				t.Fatal(err)
			}
			req, _, calls := second.engine.seen()
			if claims && (got.StatusCode != 503 || outcomeOf(got) != "not_applied" || !got.Close || calls != 0) {
				t.Errorf("%d %s, close %t; the next owner was asked %d times", got.StatusCode, got.body, got.Close, calls)
			}
			if !claims && (got.StatusCode != 201 || calls != 1 || !req.Final) {
				t.Errorf("%d %s; the next owner was asked %d times", got.StatusCode, got.body, calls)
			}
		})
	}
}

// Requests that come while a node stops, and before it shuts down, are passed on if they don't wait.
func TestStopping_RequestsThatCome(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	entry.Leaving()
	if got := entry.do(t, "POST", take, `{"wait":5}`); got.StatusCode != 503 || outcomeOf(got) != "not_applied" || !got.Close {
		t.Errorf("a claim that would wait: %d %s, close %t", got.StatusCode, got.body, got.Close)
	}
	if _, _, calls := owner.engine.seen(); calls != 0 {
		t.Errorf("the owner was asked %d times", calls)
	}
	for _, path := range []string{take, things} {
		if got := entry.do(t, "POST", path, thingBody); got.StatusCode != 201 || got.Close {
			t.Errorf("%s: %d %s, close %t", path, got.StatusCode, got.body, got.Close)
		}
	}
	if got := entry.do(t, "POST", watch+"?wait=20", ""); got.StatusCode != 201 {
		t.Errorf("a poll: %d %s", got.StatusCode, got.body)
	}
	if req, _, _ := owner.engine.seen(); !req.Final {
		t.Error("the owner lets a poll wait")
	}
}

// A request that was sent to another node just before the node shuts down does not wait there.
func TestStopping_RequestsOnTheirWay(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	var l leavers
	l.end()
	w := waitingPeer{new(conn), newPeerConn(here)}
	l.enter(w)
	var request fasthttp.Request
	var response fasthttp.Response
	if err := w.peer.take(&request, &response); !errors.Is(err, fasthttp.ErrTimeout) {
		t.Errorf("the request ends with %v", err)
	}
	if !l.leave(w.peer) {
		t.Error("the request does not know that it was abandoned")
	}
}
