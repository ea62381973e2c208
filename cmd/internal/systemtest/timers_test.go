package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
)

// onTime is how late a timer may fire (Decisions 32 and 37).
const onTime = 2 * time.Second

// timedSpace is a workspace in which sessions lie until their time is up: leased
// ones, and with a budget.
type timedSpace struct {
	id, token        string
	leased, budgeted map[string]bool
	// ends are when the leases of a session run out, one after the other.
	ends map[string][]time.Time
}

// call sends a request to one of the nodes after the other until one answers it.
func (s *timedSpace) call(ctx context.Context, t *testing.T, urls []string, path string, body any, want int, out any) {
	t.Helper()
	key := fmt.Sprint(time.Now().UnixNano())
	for n := 0; ; n++ {
		c := NewClient(urls[n%len(urls)], s.token, 1)
		err := c.Decode(ctx, "POST", "/workspaces/"+s.id+path, body, want, out, "Idempotency-Key", key)
		c.HTTP.CloseIdleConnections()
		if err == nil {
			return
		}
		if !pause(ctx, 50*time.Millisecond) {
			t.Fatal(err)
		}
	}
}

// newTimedSpace makes a workspace with sessions of both kinds, each of an issue of
// its own, and has the ones with a budget begin to run.
func newTimedSpace(ctx context.Context, t *testing.T, urls []string, slug string) *timedSpace {
	t.Helper()
	c := NewClient(urls[0], fleetRoot, 1)
	var o Onboarded
	if err := c.insist(ctx, "/workspaces/onboard", object{"name": "Timed", "slug": slug}, slug, &o); err != nil {
		t.Fatal(err)
	}
	s := &timedSpace{id: o.Workspace.ID, token: o.Token.Token, leased: map[string]bool{}, budgeted: map[string]bool{}, ends: map[string][]time.Time{}}
	for n := range 5 {
		var issue, session struct {
			ID string `json:"id"`
		}
		s.call(ctx, t, urls, "/issues", object{"title": "Timed", "priority": "low"}, http.StatusCreated, &issue)
		body, of := object{"agentId": "leased"}, s.leased
		if n%2 == 1 {
			body, of = object{"agentId": "budgeted", "maxDuration": 1}, s.budgeted
		}
		s.call(ctx, t, urls, "/issues/"+issue.ID+"/dispatch", body, http.StatusCreated, &session)
		of[session.ID] = true
	}
	var got struct{ Sessions []claimedSession }
	s.call(ctx, t, urls, "/agent/sessions/claim", object{"agentId": "budgeted", "limit": 50, "leaseSeconds": 3600}, http.StatusOK, &got)
	if len(got.Sessions) != len(s.budgeted) {
		t.Fatalf("claimed %d sessions with a budget", len(got.Sessions))
	}
	return s
}

// lease claims every leased session of the spaces, and tells when the first of their
// leases runs out and the last.
func lease(ctx context.Context, t *testing.T, urls []string, spaces []*timedSpace) (first, last time.Time) {
	t.Helper()
	for _, s := range spaces {
		var got struct{ Sessions []claimedSession }
		s.call(ctx, t, urls, "/agent/sessions/claim", object{"agentId": "leased", "limit": 50, "leaseSeconds": 10}, http.StatusOK, &got)
		if len(got.Sessions) != len(s.leased) {
			t.Errorf("claimed %d sessions, %s after the last leases ran out; there are %d", len(got.Sessions), onTime, len(s.leased))
		}
		for _, c := range got.Sessions {
			at := c.LeaseExpiresAt
			s.ends[c.Session.ID] = append(s.ends[c.Session.ID], at)
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
	}
	return first, last
}

// until lets time pass up to a moment.
func until(ctx context.Context, t *testing.T, at time.Time) {
	t.Helper()
	if !pause(ctx, time.Until(at)) {
		t.Fatal(ctx.Err())
	}
}

// check follows the sessions through the event log: what their times bring about
// happens once each, on time.
func (s *timedSpace) check(t *testing.T, log []loggedEvent) {
	t.Helper()
	for id := range s.leased {
		s.checkLeased(t, id, log)
	}
	for id := range s.budgeted {
		s.checkBudget(t, id, log)
	}
}

func late(t *testing.T, what string, at, due time.Time) {
	t.Helper()
	if at.Before(due) || at.After(due.Add(onTime)) {
		t.Errorf("%s %s after its time", what, at.Sub(due))
	}
}

func (s *timedSpace) checkLeased(t *testing.T, id string, log []loggedEvent) {
	t.Helper()
	want := []string{"created"}
	for n := range s.ends[id] {
		want = append(want, "running", "created")
		if n == claimTries-1 {
			want[len(want)-1] = "failed"
		}
	}
	var was []string
	for _, e := range log {
		if e.Data.ID != id || e.Type == "session.dead_lettered" { // the event of its end follows
			continue
		}
		if n := len(was); n > 0 && n%2 == 0 && n/2 <= len(s.ends[id]) {
			late(t, fmt.Sprintf("lease %d of session %s ran out", n/2, id), e.CreatedAt, s.ends[id][n/2-1])
		}
		was = append(was, e.Data.Status)
	}
	if !slices.Equal(was, want) {
		t.Errorf("session %s was %v, want %v", id, was, want)
	}
}

func (s *timedSpace) checkBudget(t *testing.T, id string, log []loggedEvent) {
	t.Helper()
	var began time.Time
	var issue string
	var told []string
	for _, e := range log {
		switch {
		case e.Data.ID == id && e.Data.Status == "running":
			began, issue = e.CreatedAt, e.Data.IssueID
		case e.Data.ID == issue && e.Data.Status == "triage":
			told = append(told, e.Type+" "+e.Data.Priority)
			late(t, "the issue of session "+id+" was escalated", e.CreatedAt, began.Add(time.Minute))
		case e.Data.ID == id && !began.IsZero():
			told = append(told, e.Type+" "+e.Data.Status)
			late(t, "the budget of session "+id+" ended", e.CreatedAt, began.Add(time.Minute))
		}
	}
	if want := "issue.updated medium, session.escalated canceled, session.ended canceled"; strings.Join(told, ", ") != want {
		t.Errorf("the end of session %s was told as %q, want %s", id, told, want)
	}
}

// owners tells who owns each workspace.
func owners(ctx context.Context, t *testing.T, by *Member, spaces []*timedSpace) (names []string) {
	t.Helper()
	for _, s := range spaces {
		name, err := by.Owner(ctx, s.id)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestSessions_TimesOfIdleWorkspacesThatMove has the times of sessions come in
// workspaces that nobody talks to, and whose owners were killed, restarted and
// drained meanwhile: leases run out and budgets end once each, within two seconds.
func TestSessions_TimesOfIdleWorkspacesThatMove(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	var urls []string
	for _, m := range f.members {
		urls = append(urls, m.URL)
	}
	var spaces []*timedSpace
	began := time.Now() // of the first budget, or before it
	for n := range 6 {
		spaces = append(spaces, newTimedSpace(ctx, t, urls, fmt.Sprintf("timed-%d", n)))
	}
	running := time.Now()
	// killOwner kills the owner of the first workspace, and waits until other nodes own
	// its workspaces before it starts again.
	killOwner := func() *Member {
		t.Helper()
		was := owners(ctx, t, f.members[0], spaces)
		i := slices.IndexFunc(f.members, func(m *Member) bool { return m.Name == was[0] })
		m := f.members[i]
		m.Kill()
		t.Logf("%s owned the first of %v", m.Name, was)
		return m
	}
	back := func(m *Member) {
		t.Helper()
		if slices.Contains(owners(ctx, t, f.other(m), spaces), m.Name) {
			t.Errorf("%s is dead, and owns workspaces", m.Name)
		}
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		if err := f.stand(ctx, 3); err != nil {
			t.Fatal(err)
		}
	}

	// The first leases run out while an owner is dead.
	first, last := lease(ctx, t, urls, spaces)
	until(ctx, t, first.Add(-5*time.Second))
	dead := killOwner()
	until(ctx, t, last.Add(onTime))
	back(dead)

	// The second after all nodes were killed at once.
	first, last = lease(ctx, t, urls, spaces)
	until(ctx, t, first.Add(-8*time.Second))
	for _, m := range f.members {
		m.Kill()
	}
	for _, m := range f.members {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if time.Now().After(first) {
		t.Fatal("the nodes stand too late for this test")
	}
	until(ctx, t, last.Add(onTime))

	// The third after the workspaces of a node were handed over.
	first, last = lease(ctx, t, urls, spaces)
	until(ctx, t, first.Add(-5*time.Second))
	was := owners(ctx, t, f.members[0], spaces)
	drained := f.members[slices.IndexFunc(f.members, func(m *Member) bool { return m.Name == was[0] })]
	if err := f.other(drained).operate(ctx, "POST", "/cluster/nodes/"+drained.Name+"/drain"); err != nil {
		t.Fatal(err)
	}
	for slices.Contains(owners(ctx, t, f.other(drained), spaces), drained.Name) {
		until(ctx, t, time.Now().Add(100*time.Millisecond))
	}
	until(ctx, t, last.Add(onTime))
	if err := f.other(drained).operate(ctx, "POST", "/cluster/nodes/"+drained.Name+"/undrain"); err != nil {
		t.Fatal(err)
	}

	// And the budgets while an owner is dead.
	if time.Since(began) > 53*time.Second {
		t.Fatal("too slow for this test: the first budget is about to end")
	}
	until(ctx, t, began.Add(time.Minute-5*time.Second))
	dead = killOwner()
	until(ctx, t, running.Add(time.Minute+onTime))
	back(dead)
	if err := f.members[0].Await(ctx, "nothing goes on", Quiet(3)); err != nil {
		t.Fatal(err)
	}
	f.compare(ctx, t)
	for _, s := range spaces {
		s.check(t, eventLog(t, f.members[0].Data, s.id))
	}
}

// TestSessions_TimesOfPassiveWorkspaces has the times of sessions come in workspaces
// that are no longer in memory. In its short form only leases run out.
func TestSessions_TimesOfPassiveWorkspaces(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	data := t.TempDir()
	n, stop := stoppable(t, func(c *node.Config) { c.Data, c.RootToken, c.Idle = data, fleetRoot, 200*time.Millisecond })
	urls := []string{"http://" + n.HTTPAddr()}
	var spaces []*timedSpace
	began := time.Now() // of the first budget, or before it
	for n := range 4 {
		spaces = append(spaces, newTimedSpace(ctx, t, urls, fmt.Sprintf("passive-%d", n)))
	}
	running := time.Now()
	first, last := lease(ctx, t, urls, spaces)
	// Most work that follows a request is done by then.
	until(ctx, t, last.Add(-5*time.Second))
	awaitPassive(ctx, t, n, first)
	until(ctx, t, last.Add(onTime))
	if testing.Short() {
		for _, s := range spaces {
			clear(s.budgeted)
		}
	} else {
		awaitPassive(ctx, t, n, began.Add(time.Minute))
		until(ctx, t, running.Add(time.Minute+onTime))
	}
	stop()
	for _, s := range spaces {
		s.check(t, eventLog(t, data, s.id))
	}
}

// awaitPassive waits until no workspace is in memory: the work on the search index comes ten seconds after a
// write, which may be at any moment here. The test fails if a workspace is in memory until a time.
func awaitPassive(ctx context.Context, t *testing.T, n *node.Node, before time.Time) {
	t.Helper()
	c := NewClient("http://"+n.MetricsAddr(), "", 1)
	for {
		answer, err := c.Do(ctx, "GET", "/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		passive := strings.Contains(string(answer.Body), "\nswitchyard_active_actors 0\n")
		if time.Now().After(before) {
			_, count, _ := strings.Cut(string(answer.Body), "\nswitchyard_active_actors ")
			t.Fatalf("active workspaces, or passive too late: %.20q", count)
		}
		if passive {
			return
		}
		until(ctx, t, time.Now().Add(50*time.Millisecond))
	}
}
