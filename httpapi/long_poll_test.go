package httpapi

import (
	"net"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

const (
	watch = "/w/" + workspaceID + "/watch"
	take  = "/w/" + workspaceID + "/take"
)

// Waiting is on top of what any answer may take, on the node asked and on the one
// that serves the workspace.
func TestLongPoll_WaitsLongerThanARequestMayTake(t *testing.T) {
	t.Parallel()
	const wait = 30 * time.Second
	for _, row := range []struct {
		timeout time.Duration
		takes   time.Duration // how long the engine waits for something to happen
	}{{time.Minute, 0}, {100 * time.Millisecond, 125 * time.Millisecond}} {
		a := newAtlas("b")
		hurried := func(c *Config) { c.RequestTimeout = row.timeout }
		entry, owner := a.join(t, "a", hurried), a.join(t, "b", hurried)
		for name, request := range map[string]func(*bundle) *answer{
			"by the query": func(b *bundle) *answer { return b.do(t, "POST", watch+"?wait=30", "") },
			"by the body":  func(b *bundle) *answer { return b.do(t, "POST", take, `{"wait":30}`) },
		} {
			owner.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
				if left := time.Until(req.Deadline); left <= row.timeout || left > wait+row.timeout {
					t.Errorf("%s, with a timeout of %s: there are %s left", name, row.timeout, left)
				}
				<-time.After(row.takes)
				return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
			})
			for which, b := range map[string]*bundle{"forwarded": entry, "here": owner} {
				if got := request(b); got.StatusCode != 200 {
					t.Errorf("%s, %s: %d %s", name, which, got.StatusCode, got.body)
				}
			}
		}
	}
}

// A poll that doesn't ask to wait has no more time than other requests.
func TestLongPoll_WithoutAWait(t *testing.T) {
	t.Parallel()
	const timeout = time.Minute
	a := newAtlas("b")
	limited := func(c *Config) { c.RequestTimeout = timeout }
	entry, owner := a.join(t, "a", limited), a.join(t, "b", limited)
	owner.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		if left := time.Until(req.Deadline); left > timeout {
			t.Errorf("there are %s left", left)
		}
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	})
	for _, b := range []*bundle{entry, owner} {
		if got := b.do(t, "POST", take, `{}`); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
		if got := b.do(t, "POST", take, `{"wait":31}`); got.StatusCode != 400 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
}

// A client that waits and disconnects counts as gone; one that sends more does not.
func TestLongPoll_KnowsWhoHasLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := "POST " + take + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 2\r\n\r\n{}"
	asked, verdict := make(chan func() bool, 1), make(chan bool)
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		asked <- req.Gone
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, map[bool]error{true: tracker.NotApplied("gone")}[<-verdict]
	})
	for _, leaves := range []bool{false, true} {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(ask)); err != nil {
			t.Fatal(err)
		}
		gone := <-asked
		if gone() {
			t.Error("a waiting client counts as gone")
		}
		if leaves {
			_ = c.Close()
		} else if _, err := c.Write([]byte("GET ")); err != nil {
			t.Fatal(err)
		}
		if leaves {
			testkit.Eventually(t, "a disconnected client counts as gone", gone)
		}
		if !leaves && gone() {
			t.Error("a client that sent more counts as gone")
		}
		verdict <- leaves
		_ = c.Close()
	}
}

// The server stops to receive when it shuts down. That says nothing about the client of a request
// that has arrived.
func TestLongPoll_TheEndOfReceivingIsNotTheClients(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		for _, l := range b.ears() {
			l.endReceiving()
		}
		if req.Gone() {
			return tracker.Reply{}, tracker.NotApplied("The client has closed the connection.")
		}
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	})
	if a := b.do(t, "POST", take, `{}`); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
