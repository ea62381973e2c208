package httpapi

import (
	"bufio"
	"io"
	"testing"

	"switchyard/internal/testkit"
)

// The requests that wait for clients of another node, and the streams of such clients, do not keep its other requests out.
func TestPlaces_OtherNodesRequestsThatWait(t *testing.T) {
	t.Parallel()
	const places = 4
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	var peers *listener
	testkit.Eventually(t, "the owner listens to other nodes", func() bool {
		owner.mu.Lock()
		defer owner.mu.Unlock()
		for _, l := range owner.listeners {
			if l.peers {
				peers = l
			}
		}
		return peers != nil
	})
	peers.mu.Lock()
	peers.limit = places
	peers.mu.Unlock()

	all := sleepy(owner, 1)
	var wakes []func()
	var answers []*bufio.Reader
	for range places {
		c, r := dial(t, entry.addr)
		if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
			t.Fatal(err)
		}
		w := <-all
		(<-w.armed)() // it waits again
		wakes, answers = append(wakes, <-w.armed), append(answers, r)
	}
	f := newFakeStream()
	owner.engine.stream = f
	if listenTo(t, entry); t.Failed() {
		return
	}
	listener := <-f.started
	if n := peers.resting.Load(); n != places+1 {
		t.Errorf("%d connections rest, want %d", n, places+1)
	}
	if got := entry.do(t, "GET", things+"/1", ""); got.StatusCode != 201 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	for i, wake := range wakes {
		wake()
		wantBody(t, answers[i], 200, `{"id":"mine"}`)
	}
	listener.End()
	testkit.Eventually(t, "no connection rests", func() bool { return peers.resting.Load() == 0 })
}
