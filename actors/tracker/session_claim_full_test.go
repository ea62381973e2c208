package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// fullFixture has an agent at its limit with sessions at the front of the queue, and sessions of others
// behind them.
type fullFixture struct {
	*agentFixture
	full   Agent
	behind []SessionID // in the order of the queue
}

func newFullFixture(t *testing.T, queued int) *fullFixture {
	f := &fullFixture{agentFixture: newAgentFixture(t)}
	f.full = f.register(CreateAgentIn{Name: "F", MaxConcurrentSessions: Some(int64(1))})
	f.start(f.work(PriorityLow), string(f.full.ID))
	var issue Issue
	for n := range queued {
		if n%900 == 0 {
			issue = f.work(PriorityUrgent)
		}
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(string(f.full.ID))})
	}
	pair := f.register(CreateAgentIn{Name: "P", MaxConcurrentSessions: Some(int64(2))})
	place := func(priority IssuePriority, agent, provider string) SessionID {
		return f.dispatch(f.work(priority).ID, DispatchIssueIn{AgentID: Some(agent), Provider: Some(provider)}).ID
	}
	low := []SessionID{place(PriorityLow, "z", "p"), place(PriorityLow, string(pair.ID), "p"), place(PriorityLow, "y", "p")}
	high := []SessionID{place(PriorityHigh, "y", "p"), place(PriorityHigh, string(pair.ID), "p"), place(PriorityHigh, "a", "p")}
	place(PriorityHigh, "a", "q")
	place(PriorityLow, string(pair.ID), "p") // one more than the agent may have
	f.behind = slices.Concat(high, low)
	return f
}

// claimUpTo claims sessions of a provider by searches that look at a number of sessions.
func (f *fullFixture) claimUpTo(most, limit int) []ClaimedSession {
	f.Helper()
	op := NewCommand[None, ClaimedSessions]("claim", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		q := claim{tx: tx, provider: "p", limit: limit, most: most}
		if err := q.search(); err != nil {
			return Reply{}, err
		}
		body := []byte(`{"sessions":[`)
		for n, pk := range q.found {
			_, item, err := tx.claim(pk, 3600, maxClaimed)
			if err != nil {
				return Reply{}, err
			}
			if n > 0 {
				body = append(body, ',')
			}
			body = append(body, item...)
		}
		return Reply{Body: append(body, `]}`...)}, nil
	}, WithSecret)
	return decode[ClaimedSessions](f, f.run(f.admin, op, &None{}).Body).Sessions
}

// A claim finds the sessions behind more of a full agent than it looks at, in the order of the queue.
func TestClaim_FindsSessionsBehindAFullAgent(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"one at a time": 1, "some": 4, "all": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFullFixture(t, 110)
			var got []ClaimedSession
			for range len(f.behind)/limit + 1 {
				got = append(got, f.claimUpTo(100, limit)...)
			}
			if claimedIDs(got) != fmt.Sprint(f.behind) {
				t.Errorf("claimed %s, want %v", claimedIDs(got), f.behind)
			}
			f.verify()
		})
	}
}

func TestClaim_LooksAtFewSessionsOfAFullAgent(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, maxFullPassed+10)
	got := f.claim(ClaimSessionsIn{Limit: 50, Provider: Some("p"), LeaseSeconds: 3600})
	if claimedIDs(got) != fmt.Sprint(f.behind) {
		t.Errorf("claimed %s, want %v", claimedIDs(got), f.behind)
	}
	f.run(f.admin, PatchAgent, &PatchAgentIn{ID: string(f.full.ID), MaxConcurrentSessions: Some(int64(2))})
	if got := f.claimOne(); got.Session.AgentID != string(f.full.ID) {
		t.Errorf("claimed a session of %s, want one of the agent that has room again", got.Session.AgentID)
	}
	f.verify()
}

// A session in front of those of the full agent is claimed with those behind, also if its agent has room
// for no other: the search that stopped at the full agent had found it.
func TestClaim_FindsSessionsInFrontOfAFullAgent(t *testing.T) {
	t.Parallel()
	f := &fullFixture{agentFixture: newAgentFixture(t)}
	one := f.register(CreateAgentIn{Name: "O", MaxConcurrentSessions: Some(int64(1))})
	front := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some(string(one.ID)), Provider: Some("p")}).ID
	f.full = f.register(CreateAgentIn{Name: "F", MaxConcurrentSessions: Some(int64(1))})
	f.start(f.work(PriorityLow), string(f.full.ID))
	issue := f.work(PriorityHigh)
	for range 110 {
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(string(f.full.ID)), Provider: Some("p")})
	}
	behind := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("z"), Provider: Some("p")}).ID
	if got := f.claimUpTo(100, 5); claimedIDs(got) != fmt.Sprint([]SessionID{front, behind}) {
		t.Errorf("claimed %s, want %s and %s", claimedIDs(got), front, behind)
	}
	f.verify()
}

// Many sessions of another provider, of an agent with room, keep nothing from a claim that comes before
// them in the queue, in front of sessions of a full agent or behind.
func TestClaim_FindsSessionsBeforeManyOfAnotherProvider(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"one at a time": 1, "together": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fullFixture{agentFixture: newAgentFixture(t)}
			front := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("z"), Provider: Some("p")}).ID
			f.full = f.register(CreateAgentIn{Name: "F", MaxConcurrentSessions: Some(int64(1))})
			f.start(f.work(PriorityLow), string(f.full.ID))
			issue := f.work(PriorityHigh)
			for range 20 {
				f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(string(f.full.ID)), Provider: Some("p")})
			}
			behind := f.dispatch(f.work(PriorityMedium).ID, DispatchIssueIn{AgentID: Some("z"), Provider: Some("p")}).ID
			low := f.work(PriorityLow)
			for range 150 {
				f.dispatch(low.ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some("q")})
			}
			var got []ClaimedSession
			for range 2 {
				got = append(got, f.claimUpTo(100, limit)...)
			}
			if claimedIDs(got) != fmt.Sprint([]SessionID{front, behind}) {
				t.Errorf("claimed %s, want %s and %s", claimedIDs(got), front, behind)
			}
			f.verify()
		})
	}
}

// A claim of one session of many agents has the first one of the queue, also if it may not look at all.
func TestClaim_FindsTheFirstSessionBehindAFullAgent(t *testing.T) {
	t.Parallel()
	f := &fullFixture{agentFixture: newAgentFixture(t)}
	f.full = f.register(CreateAgentIn{Name: "F", MaxConcurrentSessions: Some(int64(1))})
	f.start(f.work(PriorityLow), string(f.full.ID))
	urgent := f.work(PriorityUrgent)
	for range 120 {
		f.dispatch(urgent.ID, DispatchIssueIn{AgentID: Some(string(f.full.ID)), Provider: Some("p")})
	}
	low := f.work(PriorityLow)
	for n := range 60 {
		f.dispatch(low.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint("a", n%2)), Provider: Some("q")})
	}
	f.dispatch(low.ID, DispatchIssueIn{AgentID: Some("a2"), Provider: Some("p")})
	for range 60 {
		f.dispatch(low.ID, DispatchIssueIn{AgentID: Some("a3"), Provider: Some("q")})
	}
	first := f.dispatch(f.work(PriorityMedium).ID, DispatchIssueIn{AgentID: Some("z"), Provider: Some("p")}).ID
	if got := f.claimUpTo(50, 1); claimedIDs(got) != fmt.Sprint([]SessionID{first}) {
		t.Errorf("claimed %s, want %s", claimedIDs(got), first)
	}
	f.verify()
}

// The queues of agents hold the same sessions for a claim as the queue of all, in the same order, also
// while a search may look at few.
func TestClaim_BothSearchesAgree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newAgentFixture(t)
		agents := []string{"x", "y\x01", "y"}
		for n := range 4 {
			in := CreateAgentIn{Name: fmt.Sprint("A", n)}
			if random.IntN(3) > 0 {
				in.MaxConcurrentSessions = Some(int64(1 + random.IntN(3)))
			}
			agents = append(agents, string(f.register(in).ID))
		}
		var work []IssueID
		for range 8 {
			work = append(work, f.work([]IssuePriority{PriorityLow, PriorityHigh, PriorityUrgent}[random.IntN(3)]).ID)
		}
		for range 40 {
			f.dispatch(work[random.IntN(len(work))], DispatchIssueIn{AgentID: Some(agents[random.IntN(len(agents))]), Provider: Some([]string{"p", "q"}[random.IntN(2)])})
		}
		for range 12 {
			f.claim(ClaimSessionsIn{Limit: 1 + random.IntN(3), Provider: []Opt[string]{{}, Some("p")}[random.IntN(2)], LeaseSeconds: 3600})
			limit, provider, most := 1+random.IntN(6), []string{"", "p", "q"}[random.IntN(3)], 1+random.IntN(40)
			f.run(f.admin, NewCommand[None, None]("compare", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				all := claim{tx: tx, provider: provider, limit: limit, most: maxPassedOver}
				if _, err := all.findInOrder(maxPassedOver); err != nil {
					return Reply{}, err
				}
				few := claim{tx: tx, provider: provider, limit: limit, most: most}
				for range 2 { // the second one knows where the queues begin
					agents, _, err := few.queuesWithRoom()
					if err == nil {
						err = few.findByAgent(agents)
					}
					if err != nil {
						return Reply{}, err
					}
					want := all.found
					if few.looked == most {
						want = want[:min(len(want), len(few.found))]
					}
					if !slices.EqualFunc(few.found, want, slices.Equal) {
						t.Errorf("seed %d: found %x, want %x", seed, few.found, want)
					}
				}
				return Reply{}, nil
			}), &None{})
		}
	}
}
