package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// traffic is what clients do to a fleet while faults happen, and the books they
// keep: registers are read and written, and issues are created, each create
// repeated with its Idempotency-Key until somebody answers.
type traffic struct {
	fleet   *Fleet
	history *history
	spaces  []*space

	stop    chan struct{}
	running sync.WaitGroup
	served  atomic.Int64 // requests answered with success

	mu      sync.Mutex
	broken  []string // promises that did not hold
	longest time.Duration
}

// space is a workspace of the traffic.
type space struct {
	id, token string
	registers []string   // issue ids
	told      *eventBook // nil: nobody listens; owned by the listener until the traffic ends

	mu      sync.Mutex
	created map[string]string // externalRef -> issue id, acknowledged
	written []string          // values of registers, acknowledged
	last    time.Time         // of the latest success
	gap     time.Duration     // longest time without one
}

// newTraffic makes the workspaces and registers.
func newTraffic(ctx context.Context, f *Fleet, workspaces, registers int) (*traffic, error) {
	t := &traffic{fleet: f, history: newHistory(), stop: make(chan struct{})}
	c := f.members[0].Client(f.Root)
	for n := range workspaces {
		slug := fmt.Sprintf("traffic-%d", n)
		var o Onboarded
		if err := c.insist(ctx, "/workspaces/onboard", map[string]string{"name": "Traffic", "slug": slug}, slug, &o); err != nil {
			return nil, err
		}
		s := &space{id: o.Workspace.ID, token: o.Token.Token, created: map[string]string{}}
		w := *c
		w.Token = s.token
		for k := range registers {
			var issue Issue
			if err := w.insist(ctx, "/workspaces/"+s.id+"/issues", map[string]any{"title": "0"}, fmt.Sprintf("register-%d", k), &issue); err != nil {
				return nil, err
			}
			t.history.note(0, registerOp{Register: issue.ID, Write: true, Value: "0"}, 0, done, "")
			s.registers = append(s.registers, issue.ID)
		}
		t.spaces = append(t.spaces, s)
	}
	return t, nil
}

// insist makes something, and repeats it under its idempotency key while the answer
// is 503, as clients should: a fleet that has come up still shares its leaderships
// out.
func (c *Client) insist(ctx context.Context, path string, body any, key string, out any) error {
	for {
		a, err := c.Do(ctx, "POST", path, body, "Idempotency-Key", key)
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusCreated:
			return json.Unmarshal(a.Body, out)
		case a.Status != http.StatusServiceUnavailable:
			return fmt.Errorf("POST %s: status %d: %s", path, a.Status, a.Body)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("POST %s: %w (last: %s)", path, ctx.Err(), a.Body)
		}
	}
}

// run starts the clients: per workspace one that creates and several that read and
// write, each with a pace of its own, so that checking the history stays possible.
func (t *traffic) run(ctx context.Context, seed uint64, pace time.Duration) {
	members := t.fleet.Members() // others may join later
	for n, s := range t.spaces {
		s.last = time.Now()
		for k := range 4 {
			client := 1 + n*8 + k
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			t.running.Go(func() {
				c := clientsOf(members, s)
				for i := 1; t.wait(ctx, pace/2+rand.N(pace)); i++ {
					at := rng.IntN(len(c))
					if k == 0 {
						t.create(ctx, s, c, fmt.Sprintf("%d-%d", client, i), rng)
					} else {
						stalls := members[at].stalls.Load()
						took, answered := t.register(ctx, s, c[at], client, fmt.Sprintf("%d-%d", client, i), rng)
						// A node that was paused meanwhile answers when it can.
						if answered && stalls%2 == 0 && members[at].stalls.Load() == stalls {
							t.took(took)
						}
					}
				}
			})
		}
	}
}

// clientsOf gives one client per member.
func clientsOf(members []*Member, s *space) []*Client {
	var out []*Client
	for _, m := range members {
		out = append(out, m.Client(s.token))
	}
	return out
}

// wait is false when the traffic ends.
func (t *traffic) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.stop:
	case <-ctx.Done():
	}
	return false
}

// end stops the clients and waits for them.
func (t *traffic) end() {
	for _, s := range t.spaces {
		s.mu.Lock()
		s.gap = max(s.gap, time.Since(s.last))
		s.mu.Unlock()
	}
	close(t.stop)
	t.running.Wait()
}

// outcomeOf says what a client may conclude from an answer.
func outcomeOf(a Answer, err error) int {
	if err != nil {
		return lost // also a node that is not there: that nothing was sent is not known here
	}
	if a.Status < 300 {
		return done
	}
	var body struct {
		Details struct {
			Outcome string `json:"outcome"`
		} `json:"details"`
	}
	if json.Unmarshal(a.Body, &body) == nil && body.Details.Outcome == "not_applied" {
		return refused
	}
	return lost
}

// expected reports whether an answer may be given while faults happen.
func (t *traffic) expected(a Answer, err error, what string) {
	switch {
	case err != nil, a.Status < 300, a.Status == http.StatusServiceUnavailable:
	case a.Status == http.StatusInternalServerError && t.fleet.unreadable.Load():
	default:
		t.breach("%s: status %d: %s", what, a.Status, a.Body)
	}
}

func (t *traffic) breach(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.broken) < 20 {
		t.broken = append(t.broken, fmt.Sprintf(format, args...))
	}
}

// success counts an answered request of a workspace.
func (t *traffic) success(s *space) {
	t.served.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.gap = max(s.gap, now.Sub(s.last))
	s.last = now
}

func (t *traffic) register(ctx context.Context, s *space, c *Client, client int, value string, rng *rand.Rand) (took time.Duration, answered bool) {
	op := registerOp{Register: s.registers[rng.IntN(len(s.registers))], Write: rng.IntN(2) == 0, Value: value}
	path := "/workspaces/" + s.id + "/issues/" + op.Register
	call := t.history.now()
	var a Answer
	var err error
	if op.Write {
		a, err = c.Do(ctx, "PATCH", path, map[string]any{"title": op.Value})
	} else {
		a, err = c.Do(ctx, "GET", path, nil)
	}
	took, answered = time.Duration(t.history.now()-call), err == nil
	var read Issue
	outcome := outcomeOf(a, err)
	if outcome == done {
		if err := json.Unmarshal(a.Body, &read); err != nil {
			t.breach("an answer that is no issue: %s", a.Body)
			return took, answered
		}
		t.success(s)
		if op.Write {
			s.mu.Lock()
			s.written = append(s.written, op.Value)
			s.mu.Unlock()
		}
	}
	t.expected(a, err, "register")
	t.history.note(client, op, call, outcome, read.Title)
	return took, answered
}

// took notes how long an answer took: a request is answered in bounded time
// whatever happens, by a node that is there.
func (t *traffic) took(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = max(t.longest, d)
}

// create makes an issue and repeats it, at any node, until it is answered.
func (t *traffic) create(ctx context.Context, s *space, clients []*Client, ref string, rng *rand.Rand) {
	for {
		var issue Issue
		a, err := clients[rng.IntN(len(clients))].Do(ctx, "POST", "/workspaces/"+s.id+"/issues", map[string]any{"title": "Issue " + ref, "externalRef": ref}, "Idempotency-Key", ref)
		t.expected(a, err, "create")
		if outcomeOf(a, err) == done {
			if err := json.Unmarshal(a.Body, &issue); err != nil || issue.ID == "" {
				t.breach("an answer that is no issue: %s", a.Body)
				return
			}
			t.success(s)
			s.mu.Lock()
			s.created[ref] = issue.ID
			s.mu.Unlock()
			return
		}
		if !t.wait(ctx, 20*time.Millisecond) {
			// It may be there or not.
			s.mu.Lock()
			s.created[ref] = ""
			s.mu.Unlock()
			return
		}
	}
}

// verify compares what is there at the end with what was promised, as any node
// tells it.
func (t *traffic) verify(ctx context.Context) {
	for _, m := range t.fleet.Members() {
		if _, err := m.running(); err != nil {
			continue
		}
		for _, s := range t.spaces {
			t.verifySpace(ctx, m, s)
		}
	}
}

func (t *traffic) verifySpace(ctx context.Context, m *Member, s *space) {
	issues, err := m.Client(s.token).Walk(ctx, s.id, "")
	if err != nil {
		t.breach("%s: %v", m.Name, err)
		return
	}
	byRef := map[string][]string{}
	var numbers []int
	for _, issue := range issues {
		numbers = append(numbers, issue.Number)
		if issue.ExternalRef != nil {
			byRef[*issue.ExternalRef] = append(byRef[*issue.ExternalRef], issue.ID)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != i+1 {
			t.breach("%s: numbers of %s have a gap or a double at %d", m.Name, s.id, n)
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, id := range s.created {
		got := byRef[ref]
		delete(byRef, ref)
		switch {
		case id == "" && len(got) <= 1:
		case len(got) != 1 || got[0] != id:
			t.breach("%s: create %s was acknowledged as %q, there is %v", m.Name, ref, id, got)
		}
	}
	for ref, ids := range byRef {
		t.breach("%s: %s was never sent, there is %v", m.Name, ref, ids)
	}
}

// gaps are the longest times the workspaces were without an answered request.
func (t *traffic) gaps() []time.Duration {
	var out []time.Duration
	for _, s := range t.spaces {
		s.mu.Lock()
		out = append(out, s.gap.Round(time.Millisecond))
		s.mu.Unlock()
	}
	return out
}
