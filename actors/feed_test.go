package actors

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// recordingListener is a listener that records what it is sent.
type recordingListener struct {
	mu    sync.Mutex
	text  strings.Builder
	parts int
	slow  bool     // it takes nothing at once
	full  bool     // it has memory for the greeting alone
	asked int      // how often it was asked for memory
	ready []func() // for the parts not yet taken
	ended int
}

func (a *recordingListener) Reserve(size int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return !a.full || size < 64
}

func (a *recordingListener) Send(text []byte, ready func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(text)
	a.parts++
	if a.slow {
		a.ready = append(a.ready, ready)
	}
	return !a.slow
}

// came returns the number of parts that were sent, and their text.
func (a *recordingListener) came() (parts int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parts, a.text.String()
}

func (a *recordingListener) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended++
}

// heard returns the sequence numbers of the events that were sent.
func (a *recordingListener) heard() (numbers string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for block := range strings.SplitSeq(a.text.String(), "\n\n") {
		if id, _, ok := strings.Cut(block, "\nevent: "); ok {
			numbers += strings.TrimPrefix(id, "id: ") + " "
		}
	}
	return numbers
}

func (y *workspaceFixture) listen(a *recordingListener) tracker.Stream {
	y.t.Helper()
	return y.listenTo(a, &tracker.ListEventsIn{})
}

func (y *workspaceFixture) listenTo(a *recordingListener, in *tracker.ListEventsIn) tracker.Stream {
	y.t.Helper()
	req := request(y.workspace)
	req.Credential = rootToken
	if err := y.engine.Admit(req, tracker.ListEvents); err != nil {
		y.t.Fatal(err)
	}
	s, err := y.engine.Listen(req, tracker.ListEvents, in)
	if err != nil {
		y.t.Fatal(err)
	}
	s.Start(a)
	synctest.Wait()
	return s
}

func (y *workspaceFixture) create(n int) {
	y.t.Helper()
	for range n {
		y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Told"})
	}
}

const rootToken = "feed-root"

func withRoot(c *Config) { c.RootToken = rootToken }

func TestFeed_TellsALoneEventAtOnceAndManyTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		a, slow := &recordingListener{}, &recordingListener{slow: true}
		s := y.listen(a)
		y.listen(slow)
		pass(time.Second)
		y.create(1)
		synctest.Wait()
		if parts, _ := a.came(); a.heard() != "1 " || parts != 2 {
			t.Errorf("a lone event: %q in %d parts with the greeting", a.heard(), parts)
		}
		y.create(10)
		synctest.Wait()
		if parts, _ := a.came(); parts != 2 {
			t.Errorf("%d parts, before the pause is over", parts)
		}
		pass(feedPause)
		synctest.Wait()
		if parts, _ := a.came(); a.heard() != "1 2 3 4 5 6 7 8 9 10 11 " || parts != 3 {
			t.Errorf("many events: %q in %d parts", a.heard(), parts)
		}
		// A listener that has not taken the greeting is sent nothing more, and misses
		// nothing.
		if parts, _ := slow.came(); parts != 1 {
			t.Errorf("who is slow has %d parts", parts)
		}
		slow.mu.Lock()
		slow.slow = false
		ready := slow.ready
		slow.mu.Unlock()
		ready[0]()
		pass(feedPause)
		synctest.Wait()
		if got := slow.heard(); got != a.heard() {
			t.Errorf("who was slow has heard %q", got)
		}
		s.Leave()
		s.Leave()
		y.create(1)
		pass(time.Second)
		if got := a.heard(); strings.Contains(got, "12 ") {
			t.Errorf("who left has heard %q", got)
		}
	})
}

func TestFeed_KeepsStreamsAliveAndEndsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		a := &recordingListener{}
		s := y.listen(a)
		pass(3*feedAlive + feedTick)
		synctest.Wait()
		if _, text := a.came(); strings.Count(text, ": alive\n\n") != 3 {
			t.Errorf("want 3 signs of life in %q", text)
		}
		shard := y.engine.shardOf(y.workspace).number
		epoch, _ := y.local.Owner(shard)
		y.engine.Lost(shard, epoch)
		synctest.Wait()
		a.mu.Lock()
		ended := a.ended
		a.mu.Unlock()
		if ended == 0 {
			t.Error("the stream outlived the shard")
		}
		s.Leave()
		if got := y.engine.Stats().Listening; got != 0 {
			t.Errorf("%d listen", got)
		}
		pass(2 * time.Second) // for a round in progress
		synctest.Wait()
		stripe := y.engine.feeds.stripe(y.workspace)
		stripe.mu.Lock()
		defer stripe.mu.Unlock()
		if len(stripe.feeds) != 0 {
			t.Errorf("%d feeds are left", len(stripe.feeds))
		}
	})
}

func TestFeed_WakesRequestsThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		reader := worker("a")
		reader.Permissions, _, _ = tracker.ParsePermissions("read")
		first := y.waiting(reader, tracker.ListEvents, &tracker.ListEventsIn{Wait: 20})
		other := y.waiting(reader, tracker.ListEvents, &tracker.ListEventsIn{Wait: 20, Types: "comment.*"})
		pass(3 * time.Second)
		y.create(1)
		got := <-first
		if page := decodeBody[tracker.EventPage](t, got.reply.Body); got.err != nil || len(page.Events) != 1 || got.after != 3*time.Second {
			t.Errorf("%d events after %s, %v", len(page.Events), got.after, got.err)
		}
		got = <-other
		if page := decodeBody[tracker.EventPage](t, got.reply.Body); got.err != nil || len(page.Events) != 0 || got.after != 20*time.Second {
			t.Errorf("%d events after %s, %v", len(page.Events), got.after, got.err)
		}
		if left := y.engine.feeds.stripe(y.workspace).followers.Load(); left != 0 {
			t.Errorf("%d follow", left)
		}
	})
}

func TestFeed_HasRoomForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot, func(c *Config) { c.Limits.WorkspaceListening, c.Limits.Listening = 2, 2 })
		y.listen(&recordingListener{})
		y.listen(&recordingListener{})
		for _, workspace := range []storage.ID{y.workspace, y.workspace} {
			req := request(workspace)
			req.Credential = rootToken
			if err := y.engine.Admit(req, tracker.ListEvents); err != nil {
				t.Fatal(err)
			}
			_, err := y.engine.Listen(req, tracker.ListEvents, &tracker.ListEventsIn{})
			if outcome(err) != "not_applied" {
				t.Errorf("a third stream: %v", err)
			}
		}
		if got := fmt.Sprint(y.engine.Stats().Listening); got != "2" {
			t.Errorf("%s listen", got)
		}
	})
}

// signalListener is a listener that signals each part, and the end.
type signalListener struct{ sent, ended chan struct{} }

func (h signalListener) Reserve(int) bool { return true }

func (h signalListener) Send([]byte, func()) bool {
	signal(h.sent)
	return true
}

func (h signalListener) End() { signal(h.ended) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A stream ends with its access token, and sends no event that happened after its end.
func TestFeed_EndsWithItsAccessToken(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	start := time.Date(2026, 11, 20, 21, 30, 0, 0, time.UTC)
	b := setup(t, func(c *Config) {
		c.OpenOnboarding = true
		c.Clock = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	})
	mine := b.onboard("mine")
	req := b.admitted(mine.id, b.access(b.client(mine, "read")), tracker.ListEvents)
	s, err := b.engine.Listen(req, tracker.ListEvents, &tracker.ListEventsIn{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Leave()
	h := signalListener{make(chan struct{}, 1), make(chan struct{}, 1)}
	s.Start(h)
	happens := func() {
		t.Helper()
		if _, err := b.engine.Do(b.admitted(mine.id, mine.credential, tracker.CreateIssue), tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Told"}); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatalf("the stream %s not", what)
		}
	}
	await("begins", h.sent)
	happens()
	await("tells", h.sent)
	ahead.Store(int64(time.Hour))
	happens()
	await("ends", h.ended)
	select {
	case <-h.sent:
		t.Error("something was sent after the end of the token")
	default:
	}
}
