package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// The crash test's size: what issue acceptance asks of one node.
const (
	crashRounds  = 20
	crashWriters = 32
	crashSpaces  = 4
	// gaplessSpace is the workspace in which nothing is deleted, so that its numbers
	// must run from 1 without a gap.
	gaplessSpace = 0
)

// crashRun is one run of the crash test: the node's life and what its writers
// were promised.
type crashRun struct {
	t       *testing.T
	binary  string
	data    string
	node    *Process
	client  *Client
	spaces  []string // workspace ids
	tokens  []string
	writers []*crashWriter

	acks   atomic.Int64
	killAt atomic.Int64  // kill when this many were acknowledged
	kill   chan struct{} // closed at that moment
	dead   chan struct{} // closed when the process is gone
}

// crashWriter sends one request after another and keeps the books of what was
// acknowledged and what is uncertain. Its fields belong to its goroutine during a
// round and to the test between rounds.
type crashWriter struct {
	run   *crashRun
	n     int
	space int
	rng   *rand.Rand

	created   map[string]string // externalRef -> id, acknowledged
	uncertain []string          // externalRefs of creates with no answer
	deleted   map[string]bool   // acknowledged deletions, by id
	pair      [2]string         // two issues always changed together
	pairAt    []int             // markers the pair may carry: the last acknowledged and later ones
	counter   string            // an issue whose estimate only grows
	countAt   [2]int            // last acknowledged, last attempted
	next      int
}

// TestKill9_AcknowledgedWritesSurvive kills the node at random moments under load
// and checks after each restart that every acknowledged write is there once, that
// numbers have no gap, that nothing is half applied, and that an unanswered create
// can be repeated safely.
func TestKill9_AcknowledgedWritesSurvive(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))

	r := &crashRun{t: t, binary: binary(t), data: t.TempDir()}
	r.start(ctx)
	defer func() { r.node.Kill() }()
	r.setup(ctx, seed)
	for round := range crashRounds {
		r.round(ctx, 50+rng.Int64N(400))
		if err := Verify(ctx, r.binary, r.data); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		r.start(ctx)
		r.check(ctx)
		if t.Failed() {
			t.Fatalf("round %d: promises broken; the node's last words:\n%s", round, r.node.Output())
		}
	}
	t.Logf("%d acknowledged writes over %d kills", r.acks.Load(), crashRounds)
}

func (r *crashRun) start(ctx context.Context) {
	node, err := Launch(ctx, r.binary, r.data, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.node = node
	r.client = NewClient(node.URL, "", crashWriters)
}

func (r *crashRun) setup(ctx context.Context, seed uint64) {
	for i := range crashSpaces {
		o, err := r.client.Onboard(ctx, "Crash", fmt.Sprintf("crash-%d", i))
		if err != nil {
			r.t.Fatal(err)
		}
		r.spaces = append(r.spaces, o.Workspace.ID)
		r.tokens = append(r.tokens, o.Token.Token)
	}
	for n := range crashWriters {
		w := &crashWriter{run: r, n: n, space: n % crashSpaces, rng: rand.New(rand.NewPCG(seed, uint64(n)+2)), created: map[string]string{}, deleted: map[string]bool{}, pairAt: []int{0}}
		for i := range w.pair {
			w.pair[i] = w.mustCreate(ctx, "marker 0")
		}
		w.counter = w.mustCreate(ctx, "counter")
		r.writers = append(r.writers, w)
	}
}

func (w *crashWriter) client() *Client {
	c := *w.run.client
	c.Token = w.run.tokens[w.space]
	return &c
}

func (w *crashWriter) path(rest string) string {
	return "/workspaces/" + w.run.spaces[w.space] + "/issues" + rest
}

func (w *crashWriter) mustCreate(ctx context.Context, title string) string {
	var issue Issue
	if err := w.client().Decode(ctx, "POST", w.path(""), map[string]any{"title": title}, http.StatusCreated, &issue); err != nil {
		w.run.t.Fatal(err)
	}
	return issue.ID
}

// round lets the writers loose and kills the node after some acknowledgements.
func (r *crashRun) round(ctx context.Context, acks int64) {
	r.kill, r.dead = make(chan struct{}), make(chan struct{})
	r.killAt.Store(r.acks.Load() + acks)
	var writers sync.WaitGroup
	for _, w := range r.writers {
		writers.Go(func() {
			for w.step(ctx) {
			}
		})
	}
	select {
	case <-r.kill:
	case <-ctx.Done():
		r.t.Fatal("the writers never got that many acknowledgements")
	}
	r.node.Kill()
	close(r.dead)
	writers.Wait()
}

// acknowledged counts an acknowledgement and triggers the kill.
func (r *crashRun) acknowledged() {
	if r.acks.Add(1) == r.killAt.Load() {
		close(r.kill)
	}
}

// step sends one request; false when the node is gone.
func (w *crashWriter) step(ctx context.Context) bool {
	switch p := w.rng.IntN(100); {
	case p < 60:
		return w.create(ctx)
	case p < 75:
		return w.changePair(ctx)
	case p < 90:
		return w.count(ctx)
	case w.space == gaplessSpace:
		return w.create(ctx)
	default:
		return w.createAndDelete(ctx)
	}
}

// send sends a request and reports whether it was acknowledged. A node that answers
// anything but the wanted status before it was killed breaks the test.
func (w *crashWriter) send(ctx context.Context, method, path string, body any, want int, out any, headers ...string) bool {
	err := w.client().Decode(ctx, method, path, body, want, out, headers...)
	if err == nil {
		w.run.acknowledged()
		return true
	}
	select {
	case <-w.run.kill:
	default:
		w.run.t.Errorf("before the kill: %v", err)
	}
	return false
}

func (w *crashWriter) create(ctx context.Context) bool {
	w.next++
	ref := fmt.Sprintf("w%d-%d", w.n, w.next)
	var issue Issue
	if !w.send(ctx, "POST", w.path(""), map[string]any{"title": "Issue " + ref, "externalRef": ref, "priority": "high"}, http.StatusCreated, &issue, "Idempotency-Key", ref) {
		w.uncertain = append(w.uncertain, ref)
		return false
	}
	w.created[ref] = issue.ID
	return true
}

func (w *crashWriter) changePair(ctx context.Context) bool {
	w.next++
	w.pairAt = append(w.pairAt, w.next)
	if !w.send(ctx, "POST", w.path("/batch"), map[string]any{"ids": w.pair, "patch": map[string]any{"title": fmt.Sprintf("marker %d", w.next)}}, http.StatusOK, nil) {
		return false
	}
	w.pairAt = []int{w.next}
	return true
}

func (w *crashWriter) count(ctx context.Context) bool {
	w.countAt[1]++
	if !w.send(ctx, "PATCH", w.path("/"+w.counter), map[string]any{"estimate": w.countAt[1]}, http.StatusOK, nil) {
		return false
	}
	w.countAt[0] = w.countAt[1]
	return true
}

func (w *crashWriter) createAndDelete(ctx context.Context) bool {
	var issue Issue
	if !w.send(ctx, "POST", w.path(""), map[string]any{"title": "short-lived"}, http.StatusCreated, &issue) {
		return false
	}
	if !w.send(ctx, "DELETE", w.path("/"+issue.ID), nil, http.StatusNoContent, nil) {
		return false
	}
	w.deleted[issue.ID] = true
	return true
}

// check compares what the restarted node shows with what was promised.
func (r *crashRun) check(ctx context.Context) {
	for _, w := range r.writers {
		w.resolve(ctx)
	}
	for i, space := range r.spaces {
		c := *r.client
		c.Token = r.tokens[i]
		issues, err := c.Walk(ctx, space, "")
		if err != nil {
			r.t.Fatal(err)
		}
		byID, byRef, numbers := map[string]Issue{}, map[string][]string{}, []int{}
		for _, issue := range issues {
			byID[issue.ID] = issue
			numbers = append(numbers, issue.Number)
			if issue.ExternalRef != nil {
				byRef[*issue.ExternalRef] = append(byRef[*issue.ExternalRef], issue.ID)
			}
		}
		slices.Sort(numbers)
		if len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
			r.t.Errorf("workspace %d: a number was given twice", i)
		}
		if n := len(numbers); i == gaplessSpace && (numbers[0] != 1 || numbers[n-1] != n) {
			r.t.Errorf("workspace %d: %d issues are numbered %d to %d", i, n, numbers[0], numbers[n-1])
		}
		for _, w := range r.writers {
			if w.space == i {
				w.checkAgainst(byID, byRef)
			}
		}
	}
}

// resolve repeats the creates that had no answer, with their keys: whether they
// had been carried out or not, there is one issue afterwards.
func (w *crashWriter) resolve(ctx context.Context) {
	for _, ref := range w.uncertain {
		var issue Issue
		err := w.client().Decode(ctx, "POST", w.path(""), map[string]any{"title": "Issue " + ref, "externalRef": ref, "priority": "high"}, http.StatusCreated, &issue, "Idempotency-Key", ref)
		if err != nil {
			w.run.t.Errorf("repeat of an unanswered create: %v", err)
			continue
		}
		w.created[ref] = issue.ID
	}
	w.uncertain = nil
}

func (w *crashWriter) checkAgainst(byID map[string]Issue, byRef map[string][]string) {
	t := w.run.t
	for ref, id := range w.created {
		if got := byRef[ref]; len(got) != 1 || got[0] != id {
			t.Errorf("%s: acknowledged as %s, found %v", ref, id, got)
		}
	}
	for id := range w.deleted {
		if _, there := byID[id]; there {
			t.Errorf("%s: acknowledged as deleted, but there", id)
		}
	}
	a, b := byID[w.pair[0]].Title, byID[w.pair[1]].Title
	if a != b {
		t.Errorf("writer %d: half a batch was applied: %q and %q", w.n, a, b)
	}
	allowed := slices.ContainsFunc(w.pairAt, func(m int) bool { return a == fmt.Sprintf("marker %d", m) })
	if !allowed {
		t.Errorf("writer %d: pair carries %q, want one of markers %v", w.n, a, w.pairAt)
	} else {
		w.pairAt = slices.DeleteFunc(w.pairAt, func(m int) bool { return a != fmt.Sprintf("marker %d", m) })
	}
	got := 0
	if e := byID[w.counter].Estimate; e != nil {
		got = *e
	}
	if got < w.countAt[0] || got > w.countAt[1] {
		t.Errorf("writer %d: counter at %d, acknowledged %d, attempted %d", w.n, got, w.countAt[0], w.countAt[1])
	}
	w.countAt = [2]int{got, got}
}
