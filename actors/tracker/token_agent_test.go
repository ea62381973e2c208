package tracker

import (
	"errors"
	"testing"
	"time"

	"switchyard/storage"
)

// mint makes a token in the fleet's workspace.
func (f *agentFixture) mint(in CreateTokenIn) CreatedToken {
	f.Helper()
	return decode[CreatedToken](f, f.run(f.admin, CreateToken, &in).Body)
}

func (f *agentFixture) agents() []Agent {
	f.Helper()
	return decode[AgentList](f, f.run(f.admin, ListAgents, &PageIn{Limit: 100}).Body).Agents
}

// The agent of a token is registered with it, whatever its id: it can be assigned,
// dispatched to and limited like any other.
func TestCreateToken_RegistersItsAgent(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"", "claude", "019a0000-0000-7000-8000-000000000001", "an agent, with spaces"} {
		f := newAgentFixture(t)
		token := f.mint(CreateTokenIn{Name: "Robo", ActorType: ActorAgent, AgentID: named, Provider: "p"})
		id := named
		if id == "" {
			id = string(token.ID)
		}
		agent := decode[Agent](t, f.run(f.admin, AgentByID, &AgentByIDIn{ID: id}).Body)
		if string(agent.ID) != id || agent.Name != "Robo" || agent.Provider == nil || *agent.Provider != "p" || agent.OrganizationID != f.home.Workspace.ID {
			t.Errorf("%q: registered %+v", named, agent)
		}
		issue, other := f.work(PriorityLow), f.work(PriorityLow)
		f.run(f.admin, PatchAgent, &PatchAgentIn{ID: id, MaxConcurrentSessions: Some(int64(1))})
		for _, i := range []Issue{issue, other} {
			assigned := decode[AssignedIssue](t, f.run(f.admin, AssignIssue, &AssignIssueIn{ID: string(i.ID), AssigneeID: Some(id)}).Body)
			if assigned.Session == nil || assigned.Session.AgentID != id || assigned.Session.Provider != "p" {
				t.Fatalf("%q: assigning dispatched %+v", named, assigned.Session)
			}
		}
		claim := func() []ClaimedSession {
			return decode[ClaimedSessions](t, f.run(token.Secret, ClaimSessions, &ClaimSessionsIn{Limit: 5}).Body).Sessions
		}
		got := claim()
		if len(got) != 1 || len(claim()) != 0 {
			t.Fatalf("%q: an agent that takes one session claimed %s", named, claimedIDs(got))
		}
		if err := f.report(got[0].LaneToken, got[0].Session.ID, SessionCompleted); err != nil {
			t.Fatal(err)
		}
		if n := len(claim()); n != 1 {
			t.Errorf("%q: with a place free it claimed %d sessions", named, n)
		}
		f.verify()
		// Deleting the token does not delete the agent.
		f.run(f.admin, DeleteToken, &DeleteTokenIn{ID: token.ID})
		if n := len(f.agents()); n != 1 {
			t.Errorf("%q: %d agents are registered after the token's deletion", named, n)
		}
		f.verify()
	}
}

func TestCreateToken_RegistersAnAgentOnce(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := CreateTokenIn{Name: "First", AgentID: "claude"}
	f.mint(in)
	f.run(f.admin, PatchAgent, &PatchAgentIn{ID: "claude", Model: Some("m")})
	in.Name = "Second"
	f.mint(in)
	first := f.must(f.admin, f.home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "Third", ActorType: ActorAgent}, "key")
	again := f.must(f.admin, f.home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "Third", ActorType: ActorAgent}, "key")
	if !again.Replayed || string(again.Body) != string(first.Body) {
		t.Error("the repeat is not the first answer")
	}
	// The list is newest first, whatever the ids.
	all := f.agents()
	if len(all) != 2 || all[0].Name != "Third" || all[1].ID != "claude" || all[1].Name != "First" || *all[1].Model != "m" {
		t.Errorf("registered %+v", all)
	}
	// Tokens of users, and the agent "unassigned", register no agent.
	f.mint(CreateTokenIn{Name: "Mine"})
	f.mint(CreateTokenIn{Name: "Nobody's", AgentID: unassigned})
	if n := len(f.agents()); n != 2 {
		t.Errorf("%d agents are registered", n)
	}
	f.verify()
}

// Sessions that an agent worked on before its registration count afterwards.
func TestCreateToken_AgentWasAtWorkBefore(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for range 2 {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("claude")})
	}
	f.claimOne()
	f.mint(CreateTokenIn{Name: "Claude", AgentID: "claude"})
	f.run(f.admin, PatchAgent, &PatchAgentIn{ID: "claude", MaxConcurrentSessions: Some(int64(1))})
	if got := f.claim(ClaimSessionsIn{Limit: 5}); len(got) != 0 {
		t.Errorf("claimed %s beside the one it takes", claimedIDs(got))
	}
	f.verify()
}

// No token is made if there are too many agents to register its own.
func TestCreateToken_NoPlaceForItsAgent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.fill(agentTable)
	_, err := f.try(f.admin, CreateToken, &CreateTokenIn{Name: "One more", ActorType: ActorAgent})
	wantCode(t, err, CodeConflict)
	f.now = f.now.Add(time.Second)
	if n := len(decode[TokenList](t, f.run(f.admin, ListTokens, &PageIn{}).Body).Tokens); n != 1 {
		t.Errorf("there are %d tokens", n)
	}
}

// fill sets the counter of a table's records to its limit.
func (f *agentFixture) fill(table storage.TableID) {
	f.Helper()
	f.run("root", NewCommand[None, None]("fill", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{Outcome: NoContent}, tx.SetCounter(recordCountTable, recordCountSubject(table), quotas[table].most)
	}), &None{})
}

// Null takes the fields of concurrency keys away, as it does with an agent's other fields.
func TestPatchAgent_NullConcurrencyBy(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	id := string(f.register(CreateAgentIn{Name: "Robo", ConcurrencyBy: Some([]ConcurrencyField{"repo"})}).ID)
	for _, row := range []struct {
		in   Opt[[]ConcurrencyField]
		want int
	}{{Opt[[]ConcurrencyField]{}, 1}, {Opt[[]ConcurrencyField]{Set: true, Null: true}, 0}, {Opt[[]ConcurrencyField]{}, 0}} {
		agent := decode[Agent](t, f.run(f.admin, PatchAgent, &PatchAgentIn{ID: id, ConcurrencyBy: row.in}).Body)
		if agent.ConcurrencyBy == nil || len(agent.ConcurrencyBy) != row.want {
			t.Errorf("after %+v the agent has %v", row.in, agent.ConcurrencyBy)
		}
	}
}

// All that is wrong with a new token is told at once.
func TestCreateToken_AllFaults(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, err := f.try(f.admin, CreateToken, &CreateTokenIn{Name: "x", UserID: "nobody", ExpiresAt: Some("2020-01-01T00:00:00Z")})
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("a token of nobody that has expired: %v", err)
	}
	if details, _ := refused.Details.(BadRequestDetails); len(details.Issues) != 2 || details.Issues[0].Path != "expiresAt" || details.Issues[1].Path != "userId" {
		t.Errorf("faults %+v", refused.Details)
	}
}
