package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// webhookEvents is how many events a test makes, SWITCHYARD_TEST_EVENTS or few, and
// how long it may take.
func webhookEvents() (n int64, within time.Duration) {
	n, err := strconv.ParseInt(os.Getenv("SWITCHYARD_TEST_EVENTS"), 10, 64)
	switch {
	case err == nil:
	case testing.Short():
		n = 500
	default:
		n = 3000
	}
	return n, 4*time.Minute + time.Duration(n)*10*time.Millisecond
}

// mailbox receives the deliveries of a number of webhooks and keeps the books.
type mailbox struct {
	server *httptest.Server
	mu     sync.Mutex
	boxes  []*box
	wrong  []string // what must not happen
	took   []time.Duration
}

// box is one webhook's.
type box struct {
	first   uint64            // the highest sequence seen
	ids     map[uint64]string // by sequence, of what was taken
	repeats int
	// refused are the ids of what was not taken at its first try; nil for a box that
	// takes everything, which comes in order then.
	refused map[uint64]string
}

// refusedOf is how many events there are for one that is refused.
const refusedOf = 25

// newMailbox makes a number of boxes that take everything, and one that refuses now
// and then.
func newMailbox(t *testing.T, boxes int) *mailbox {
	t.Helper()
	m := &mailbox{}
	for range boxes {
		m.boxes = append(m.boxes, &box{ids: map[uint64]string{}})
	}
	m.boxes = append(m.boxes, &box{ids: map[uint64]string{}, refused: map[uint64]string{}})
	m.server = httptest.NewServer(http.HandlerFunc(m.take))
	t.Cleanup(m.server.Close)
	return m
}

func (m *mailbox) take(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	var e struct {
		Sequence  uint64    `json:"sequence"`
		CreatedAt time.Time `json:"createdAt"`
	}
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return // cut off by a kill
	}
	b, id := m.boxes[n], r.Header.Get("X-Tracker-Delivery")
	m.took = append(m.took, time.Since(e.CreatedAt))
	if known := b.ids[e.Sequence]; known != "" {
		b.repeats++
		if known != id {
			m.wrong = append(m.wrong, fmt.Sprintf("event %d came to %d as %s and as %s", e.Sequence, n, known, id))
		}
		return
	}
	if before := b.refused[e.Sequence]; before != "" && before != id {
		m.wrong = append(m.wrong, fmt.Sprintf("event %d came to %d as %s first and then as %s", e.Sequence, n, before, id))
	} else if b.refused != nil && before == "" && e.Sequence%refusedOf == 0 {
		b.refused[e.Sequence] = id
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if b.refused == nil && e.Sequence != b.first+1 {
		m.wrong = append(m.wrong, fmt.Sprintf("event %d came to %d after %d", e.Sequence, n, b.first))
	}
	b.first = max(b.first, e.Sequence)
	b.ids[e.Sequence] = id
}

// has reports whether every webhook has all events up to a sequence.
func (m *mailbox) has(upTo int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.boxes {
		if len(b.ids) < upTo {
			return false
		}
	}
	return true
}

func (m *mailbox) report(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range m.boxes {
		t.Logf("webhook %d: %d events, %d repeats, %d refused at first", i, len(b.ids), b.repeats, len(b.refused))
	}
	for _, w := range m.wrong[:min(len(m.wrong), 10)] {
		t.Error(w)
	}
}

// subscribe makes the webhooks of a workspace.
func (m *mailbox) subscribe(ctx context.Context, t *testing.T, c *Client, workspace string) {
	t.Helper()
	for n := range m.boxes {
		if err := c.Decode(ctx, "POST", "/workspaces/"+workspace+"/webhook-subscriptions", map[string]any{"url": fmt.Sprintf("%s/%d", m.server.URL, n)}, http.StatusCreated, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// writeIssues creates issues from a number of writers until that many were
// acknowledged. at gives the client for a try; a failed one is tried again.
func writeIssues(ctx context.Context, workspace string, total int64, at func(try int) *Client) *atomic.Int64 {
	var acked, sent atomic.Int64
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for try := 0; acked.Load() < total && ctx.Err() == nil; {
				key := fmt.Sprint(sent.Add(1))
				for done := false; !done && ctx.Err() == nil; try++ {
					a, err := at(try).Do(ctx, "POST", "/workspaces/"+workspace+"/issues", map[string]any{"title": "issue " + key}, "Idempotency-Key", key)
					if done = err == nil && a.Status == http.StatusCreated; done {
						acked.Add(1)
					} else if !pause(ctx, 5*time.Millisecond) {
						return
					}
				}
			}
		})
	}
	go writers.Wait()
	return &acked
}

var toLocal = []string{"--webhooks-allow-http", "--webhooks-allow-cidr", "127.0.0.0/8"}

// A node that is killed again and again with deliveries pending delivers every
// event at least once, first in the order of commits, and each under one id.
func TestWebhooks_Kill9LosesNothing(t *testing.T) {
	t.Parallel()
	total, within := webhookEvents()
	ctx, cancel := limited(t, within)
	defer cancel()
	m := newMailbox(t, 3)
	bin, data := binary(t), t.TempDir()
	node, err := Launch(ctx, bin, data, nil, toLocal...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { node.Kill() }()
	o, err := NewClient(node.URL, "", 1).Onboard(ctx, "Hooks", "hooks")
	if err != nil {
		t.Fatal(err)
	}
	var client atomic.Pointer[Client]
	client.Store(NewClient(node.URL, o.Token.Token, 16))
	m.subscribe(ctx, t, client.Load(), o.Workspace.ID)
	acked := writeIssues(ctx, o.Workspace.ID, total, func(int) *Client { return client.Load() })
	for kill := int64(1); kill <= 4; kill++ {
		testkit.Await(ctx, t, "writes", func() bool { return acked.Load() >= total*kill/5 })
		node.Kill()
		if err := Verify(ctx, bin, data); err != nil {
			t.Fatal(err)
		}
		if node, err = Launch(ctx, bin, data, nil, toLocal...); err != nil {
			t.Fatal(err)
		}
		client.Store(NewClient(node.URL, o.Token.Token, 16))
	}
	testkit.Await(ctx, t, "the last writes", func() bool { return acked.Load() >= total })
	m.settle(ctx, t, client.Load(), o.Workspace.ID)
	node.Kill()
	if err := Verify(ctx, bin, data); err != nil {
		t.Error(err)
	}
}

// settle waits until every webhook has the events of every issue there is.
func (m *mailbox) settle(ctx context.Context, t *testing.T, c *Client, workspace string) {
	t.Helper()
	began := time.Now()
	count := 0
	for {
		issues, err := c.Walk(ctx, workspace, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(issues) == count {
			break // the last writers have ended
		}
		count = len(issues)
		pause(ctx, 100*time.Millisecond)
	}
	defer m.report(t)
	testkit.Await(ctx, t, fmt.Sprintf("deliveries of %d events", count), func() bool { return m.has(count) })
	t.Logf("the last of %d events was delivered within %s of the last write", count, time.Since(began).Round(time.Millisecond))
}

// The same when the owner of the workspace's shard is killed and another node goes
// on.
func TestWebhooks_FailOverLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: make full runs it")
	}
	t.Parallel()
	total, within := webhookEvents()
	ctx, cancel := limited(t, within)
	defer cancel()
	m := newMailbox(t, 3)
	f := NewFleet(binary(t), t.TempDir(), append([]string{"--shards", "4"}, toLocal...)...)
	defer f.Close()
	for i := range 3 {
		var flags []string
		if i > 0 {
			flags = []string{"--join", f.Members()[0].Seed()}
		}
		n, err := f.Add(fmt.Sprintf("node-%d", i+1), flags...)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		if err := n.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	all := f.Members()
	if err := all[0].Await(ctx, "three voters everywhere", Level(3)); err != nil {
		t.Fatal(err)
	}
	o, err := all[0].Client("").Onboard(ctx, "Hooks", "hooks")
	if err != nil {
		t.Fatal(err)
	}
	clients := make([]*Client, len(all))
	for i, n := range all {
		clients[i] = NewClient(n.URL, o.Token.Token, 16)
	}
	m.subscribe(ctx, t, clients[0], o.Workspace.ID)
	acked := writeIssues(ctx, o.Workspace.ID, total, func(try int) *Client { return clients[try%len(clients)] })
	testkit.Await(ctx, t, "writes", func() bool { return acked.Load() >= total/3 })
	owner, err := all[0].Owner(ctx, o.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	alive := clients[0]
	for i, n := range all {
		if n.Name == owner {
			n.Kill()
			alive = clients[(i+1)%len(all)]
		}
	}
	t.Logf("killed %s", owner)
	testkit.Await(ctx, t, "the last writes", func() bool { return acked.Load() >= total })
	m.settle(ctx, t, alive, o.Workspace.ID)
}
