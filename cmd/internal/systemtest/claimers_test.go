package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

const (
	claimers = 64
	// claimedIssues have two sessions each, of one agent.
	claimedIssues, claimedIssuesShort = 2500, 150
	// claimAgents take the sessions; the first takes no more than cappedAt at a time.
	claimAgents = 4
	cappedAt    = 16
	// claimLease is the shortest lease there is, in seconds: that is how long the
	// sessions of a dead claimer lie.
	claimLease = 10
	// claimTries is how often a session is given out at most (Decision 37).
	claimTries = 3
)

// claimRun is many claimers that work sessions off and die over it, and the books of
// what they were told.
type claimRun struct {
	*testing.T
	node   *Process
	token  string
	path   string // of the sessions
	agents []string
	all    int                 // sessions
	doomed map[string]struct{} // sessions that kill the agent that claims them
	done   chan struct{}       // closed when there is nothing left to do

	running sync.WaitGroup
	mu      sync.Mutex
	next    int
	held    map[string][]hold
	results map[string][]string // of reports that were acknowledged, by session
	deaths  int
	unheard int // claims whose answer nobody was there to hear
	refused int // attempts of claimers that came back from the dead
}

// hold is the time for which a claimer had reason to think a session its own: from
// the answer to its claim until its last report was answered or its lease ran out.
type hold struct{ from, to time.Time }

type claimedSession struct {
	Session struct {
		ID string `json:"id"`
	} `json:"session"`
	LaneToken      string    `json:"laneToken"`
	LeaseExpiresAt time.Time `json:"leaseExpiresAt"`
}

// TestClaim_ClaimersThatDie lets claimers work on sessions, and die over them at
// random: with sessions in hand, or while an answer is on its way to them. Every
// session is finished once, by its last holder, and never is one held by two; who
// was presumed dead is refused. The event log tells the same as the claimers.
func TestClaim_ClaimersThatDie(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	data := t.TempDir()
	node, err := Launch(ctx, binary(t), data, nil, "--shards", "2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	home, err := NewClient(node.URL, "", 1).Onboard(ctx, "Claimed", "claimed")
	if err != nil {
		t.Fatal(err)
	}
	r := &claimRun{
		T: t, node: node, token: home.Token.Token, path: "/workspaces/" + home.Workspace.ID + "/agent/sessions",
		doomed: map[string]struct{}{}, done: make(chan struct{}), held: map[string][]hold{}, results: map[string][]string{},
	}
	s := testkit.Seed(t)
	issues := claimedIssues
	if testing.Short() {
		issues = claimedIssuesShort
	}
	r.fill(ctx, home.Workspace.ID, issues)
	began := time.Now()
	for n := range claimers {
		rng := rand.New(rand.NewPCG(s, uint64(n)))
		r.running.Go(func() {
			for r.life(ctx, rng) { // another takes the place of one that dies
			}
		})
	}
	r.awaitEnd(ctx)
	r.running.Wait()
	if err := ctx.Err(); err != nil {
		t.Fatalf("%v: with %d of %d sessions completed", err, len(r.results), r.all)
	}
	took := time.Since(began)
	if err := node.Terminate(ctx); err != nil {
		t.Error(err)
	}
	if err := Verify(ctx, binary(t), data); err != nil {
		t.Error(err)
	}
	r.checkHolds()
	r.checkLog(eventLog(t, data, home.Workspace.ID))
	t.Logf("%d sessions in %s; %d claimers died, %d of them unheard, %d were refused when they came back", r.all, took.Round(time.Millisecond), r.deaths, r.unheard, r.refused)
	if r.deaths == 0 || r.refused == 0 {
		t.Error("nobody died, or nobody came back: nothing was tried")
	}
}

// fill makes the agents and the sessions.
func (r *claimRun) fill(ctx context.Context, workspace string, issues int) {
	c := r.client()
	var made struct {
		ID string `json:"id"`
	}
	for n := range claimAgents {
		body := object{"name": fmt.Sprintf("Agent %d", n)}
		if n == 0 {
			body["maxConcurrentSessions"] = cappedAt
		}
		if err := c.Decode(ctx, "POST", "/workspaces/"+workspace+"/agents", body, http.StatusCreated, &made); err != nil {
			r.Fatal(err)
		}
		r.agents = append(r.agents, made.ID)
	}
	r.all = 2 * issues
	priorities := []string{"urgent", "high", "medium", "low"}
	var all sync.WaitGroup
	for k := range 16 {
		all.Go(func() {
			c := r.client()
			for n := k; n < issues; n += 16 {
				var issue, session struct {
					ID string `json:"id"`
				}
				if err := c.Decode(ctx, "POST", "/workspaces/"+workspace+"/issues", object{"title": fmt.Sprint("Work ", n), "priority": priorities[n%4]}, http.StatusCreated, &issue); err != nil {
					r.Error(err)
					return
				}
				for twin := range 2 {
					if err := c.Decode(ctx, "POST", "/workspaces/"+workspace+"/issues/"+issue.ID+"/dispatch", object{"agentId": r.agents[n/4%claimAgents]}, http.StatusCreated, &session); err != nil {
						r.Error(err)
						return
					}
					if twin == 0 && n%100 == 1 {
						r.mu.Lock()
						r.doomed[session.ID] = struct{}{}
						r.mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	if r.Failed() {
		r.FailNow()
	}
}

func (r *claimRun) client() *Client { return NewClient(r.node.URL, r.token, 1) }

// awaitEnd closes done when no session is left that has not ended. One request counts all of them: between
// two requests a session whose lease runs out goes from one status to the other.
func (r *claimRun) awaitEnd(ctx context.Context) {
	defer close(r.done)
	c := r.client()
	for pause(ctx, 200*time.Millisecond) {
		var queue struct {
			Counts map[string]int `json:"counts"`
		}
		if err := c.Decode(ctx, "GET", strings.TrimSuffix(r.path, "sessions")+"queue", nil, http.StatusOK, &queue); err != nil {
			r.Error(err)
			return
		}
		if queue.Counts["created"]+queue.Counts["running"]+queue.Counts["waiting"] == 0 {
			return
		}
	}
}

// life is one claimer's, from its first claim until it dies; false when there is
// nothing left to do.
func (r *claimRun) life(ctx context.Context, rng *rand.Rand) bool {
	ctx, die := context.WithCancel(ctx)
	defer die()
	c := r.client()
	defer c.HTTP.CloseIdleConnections()
	for {
		select {
		case <-r.done:
			return false
		default:
		}
		asking, hangUp := ctx, context.CancelFunc(func() {})
		hangsUp := rng.IntN(100) == 0
		if hangsUp {
			asking, hangUp = context.WithTimeout(ctx, time.Duration(rng.IntN(8000))*time.Microsecond)
		}
		var got struct {
			Sessions []claimedSession `json:"sessions"`
		}
		err := c.Decode(asking, "POST", r.path+"/claim", object{"limit": 1 + rng.IntN(3), "leaseSeconds": claimLease, "wait": 1}, http.StatusOK, &got)
		hangUp()
		switch {
		case err != nil && hangsUp:
			r.died(0)
			return true
		case err != nil:
			r.Error(err)
			return false
		}
		at := time.Now()
		for n, s := range got.Sessions {
			_, doomed := r.doomed[s.Session.ID]
			if doomed || rng.IntN(50) == 0 {
				r.abandon(ctx, rng, at, got.Sessions[n:])
				return true
			}
			if !r.work(ctx, rng, c, at, s) {
				return false
			}
		}
	}
}

func (r *claimRun) died(with int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaths++
	if with == 0 {
		r.unheard++
	}
}

// note keeps for how long a claimer held a session.
func (r *claimRun) note(id string, h hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[id] = append(r.held[id], h)
}

// abandon is the death of a claimer with sessions in hand. Some come back when their
// leases have run out, and want to go on as if nothing had been.
func (r *claimRun) abandon(ctx context.Context, rng *rand.Rand, at time.Time, sessions []claimedSession) {
	r.died(len(sessions))
	for _, s := range sessions {
		r.note(s.Session.ID, hold{at, s.LeaseExpiresAt})
		if rng.IntN(2) == 0 {
			continue
		}
		// Past the lease and what it may take to notice, and past the next one maybe.
		back := time.Until(s.LeaseExpiresAt) + 2*time.Second + time.Duration(rng.IntN(2000))*time.Millisecond
		ctx := context.WithoutCancel(ctx)
		r.running.Go(func() {
			select {
			case <-time.After(back):
			case <-r.done:
			}
			if time.Until(s.LeaseExpiresAt) > 0 {
				return // the others were done before
			}
			lane := r.client()
			lane.Token = s.LaneToken
			answer, err := lane.Do(ctx, "POST", r.path+"/"+s.Session.ID+"/report", object{"status": "completed", "result": "of a dead claimer"})
			switch {
			case err != nil:
				r.Error(err)
			case answer.Status != http.StatusConflict && answer.Status != http.StatusUnauthorized:
				r.Errorf("session %s: who lost it %s ago reports and is answered %d %s", s.Session.ID, time.Since(s.LeaseExpiresAt), answer.Status, answer.Body)
			default:
				r.mu.Lock()
				r.refused++
				r.mu.Unlock()
			}
		})
	}
}

// work does what there is to do on a session; false when that went wrong.
func (r *claimRun) work(ctx context.Context, rng *rand.Rand, c *Client, at time.Time, s claimedSession) bool {
	lane := *c
	lane.Token = s.LaneToken
	expires := s.LeaseExpiresAt
	if rng.IntN(4) == 0 {
		var logged struct {
			LeaseExpiresAt time.Time `json:"leaseExpiresAt"`
		}
		if err := lane.Decode(ctx, "POST", r.path+"/"+s.Session.ID+"/log", object{"message": "At it"}, http.StatusCreated, &logged); err != nil {
			r.Errorf("with the lease until %s: %v", expires, err)
			return false
		}
		expires = logged.LeaseExpiresAt
	}
	r.mu.Lock()
	r.next++
	result := fmt.Sprint("Result ", r.next)
	r.mu.Unlock()
	if err := lane.Decode(ctx, "POST", r.path+"/"+s.Session.ID+"/report", object{"status": "completed", "result": result}, http.StatusOK, nil); err != nil {
		r.Errorf("with the lease until %s: %v", expires, err)
		return false
	}
	r.note(s.Session.ID, hold{at, time.Now()})
	r.mu.Lock()
	r.results[s.Session.ID] = append(r.results[s.Session.ID], result)
	r.mu.Unlock()
	return true
}

// checkHolds looks whether two claimers thought the same session their own at once.
func (r *claimRun) checkHolds() {
	for id, holds := range r.held {
		slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
		for i := 1; i < len(holds); i++ {
			if holds[i].from.Before(holds[i-1].to) {
				r.Errorf("session %s was held until %s by one and from %s by another", id, holds[i-1].to, holds[i].from)
			}
		}
		if len(holds) > claimTries {
			r.Errorf("session %s was given out %d times", id, len(holds))
		}
	}
	for id, results := range r.results {
		if len(results) != 1 {
			r.Errorf("session %s was finished %d times: %v", id, len(results), results)
		}
	}
}

// claimLife is a session's as the event log tells it.
type claimLife struct {
	status        string
	claims, ended int
	result        string
}

// checkLog follows every session through the event log, and holds its end against
// what the claimers know.
func (r *claimRun) checkLog(log []loggedEvent) {
	lives := map[string]*claimLife{}
	atIssue, atAll := map[string]int{}, map[string]int{}
	most := 0
	for _, e := range log {
		if !strings.HasPrefix(e.Type, "session.") {
			continue
		}
		if e.Type == "session.dead_lettered" { // the event of its end follows
			continue
		}
		s := &e.Data
		l := lives[s.ID]
		if l == nil {
			l = &claimLife{}
			lives[s.ID] = l
		}
		was := l.status
		l.status = s.Status
		if ended(was) {
			r.Errorf("event %d: session %s is told of after its end", e.Sequence, s.ID)
		}
		if (e.Type == "session.ended") != ended(s.Status) || (e.Type == "session.created") != (was == "") {
			r.Errorf("event %d: %s of session %s, from %q to %s", e.Sequence, e.Type, s.ID, was, s.Status)
		}
		by := 0
		switch {
		case was == "created" && s.Status == "running":
			l.claims++
			by = 1
		case was == "running" && s.Status != "running":
			by = -1
		case was == "created": // without a claim nothing happens to it
			r.Errorf("event %d: session %s went from created to %s", e.Sequence, s.ID, s.Status)
		}
		if ended(s.Status) {
			l.ended++
			if s.Result != nil {
				l.result = *s.Result
			}
		}
		atIssue[s.IssueID] += by // its two sessions are of one agent
		atAll[s.AgentID] += by
		most = max(most, atAll[r.agents[0]])
		if atIssue[s.IssueID] > 1 {
			r.Errorf("event %d: agent %s is at two sessions of issue %s", e.Sequence, s.AgentID, s.IssueID)
		}
	}
	if len(lives) != r.all {
		r.Errorf("the log knows of %d sessions, there are %d", len(lives), r.all)
	}
	if most != cappedAt {
		r.Errorf("the agent that takes %d sessions at a time had up to %d", cappedAt, most)
	}
	failed, unheard := 0, 0
	for id, l := range lives {
		_, doomed := r.doomed[id]
		results := r.results[id]
		switch {
		case l.ended != 1:
			r.Errorf("session %s has ended %d times", id, l.ended)
		case l.status == "completed" && (len(results) != 1 || results[0] != l.result):
			r.Errorf("session %s was completed with %q, its claimers had %q acknowledged", id, l.result, results)
		case l.status == "completed" && doomed, l.status == "canceled":
			r.Errorf("session %s is %s", id, l.status)
		case l.status == "failed" && (l.claims != claimTries || len(results) > 0):
			r.Errorf("session %s failed after %d claims, with %v acknowledged", id, l.claims, results)
		}
		if l.status == "failed" {
			failed++
		}
		if l.claims > claimTries || l.claims < len(r.held[id]) {
			r.Errorf("session %s was given out %d times, %d claimers know of it", id, l.claims, len(r.held[id]))
		}
		unheard += l.claims - len(r.held[id])
	}
	// An answer to nobody may have given out as many as a claim asks for.
	if unheard > 3*r.unheard {
		r.Errorf("%d sessions were given to nobody, by %d claims that nobody heard the answer of", unheard, r.unheard)
	}
	r.Logf("%d failed, %d were given to claimers that had hung up", failed, unheard)
}
