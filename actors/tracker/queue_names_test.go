package tracker

import (
	"fmt"
	"maps"
	"testing"
)

// queueNamesOf returns the names of the agents and keys that a caller gets, as text.
func (f *agentFixture) queueNamesOf(credential string) string {
	f.Helper()
	q := decode[QueueSummary](f, f.run(credential, ReadQueue, &None{}).Body)
	agents, keys := []string{}, []string{}
	for _, a := range q.ByAgent {
		agents = append(agents, a.AgentID)
	}
	for _, k := range q.ByKey {
		keys = append(keys, k.Key)
	}
	return fmt.Sprint(agents, keys)
}

// Callers that don't see every issue get the names of agents and concurrency keys of the sessions
// that they see. The counts are of all issues.
func TestReadQueue_NamesOfVisibleSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, guest := f.testService.member(f.home, RoleGuest, "read")
	_, member := f.testService.member(f.home, RoleMember, "read")
	team := decode[Team](t, f.run(f.admin, CreateTeam, &CreateTeamIn{Name: "Private", Key: "PRIV", IsPublic: Some(false)}).Body)
	private := decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "Hidden", IssueFields: IssueFields{TeamID: Some(team.ID)}}).Body)
	restricted := f.work(PriorityLow)
	open := f.work(PriorityLow)
	keyed := func(keys ...string) SessionOptions { return SessionOptions{ConcurrencyKeys: Some(keys)} }
	f.dispatch(private.ID, DispatchIssueIn{AgentID: Some("private-agent"), SessionOptions: keyed("branch:private", "shared")})
	f.dispatch(restricted.ID, DispatchIssueIn{AgentID: Some("restricted-agent"), SessionOptions: keyed("branch:restricted")})
	f.dispatch(open.ID, DispatchIssueIn{AgentID: Some("agent"), SessionOptions: keyed("branch:open")})
	for range 3 {
		f.claimOne()
	}
	f.dispatch(open.ID, DispatchIssueIn{AgentID: Some("other"), SessionOptions: keyed("shared")}) // parked
	f.dispatch(private.ID, DispatchIssueIn{AgentID: Some("private-queue")})
	all := "[agent other private-agent private-queue restricted-agent] [branch:open branch:private branch:restricted shared]"
	for _, step := range []struct {
		restrict      bool
		member, guest string
	}{
		{false, "[agent other restricted-agent] [branch:open branch:restricted shared]", "[agent other restricted-agent] [branch:open branch:restricted shared]"},
		{true, "[agent other] [branch:open shared]", "[agent other] [branch:open shared]"},
	} {
		if step.restrict {
			f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(restricted.ID), ActorID: "nobody", ActorType: GranteeUser})
		}
		for credential, want := range map[string]string{f.admin: all, member: step.member, guest: step.guest} {
			if got := f.queueNamesOf(credential); got != want {
				t.Errorf("restricted: %t: names %s, want %s", step.restrict, got, want)
			}
		}
	}
	every, some := f.queue(), decode[QueueSummary](t, f.run(guest, ReadQueue, &None{}).Body)
	if !maps.Equal(every.Counts, some.Counts) || !maps.Equal(every.WaitingFor, some.WaitingFor) {
		t.Errorf("a guest gets the counts %v and %v, want %v and %v", some.Counts, some.WaitingFor, every.Counts, every.WaitingFor)
	}
}

// The newest sessions of an agent decide whether it is named: no more than maxNameLooked of them.
func TestReadQueue_NamesWithinABound(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, guest := f.testService.member(f.home, RoleGuest, "read")
	hidden := f.work(PriorityLow)
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(hidden.ID), ActorID: "nobody", ActorType: GranteeUser})
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("agent")})
	for n := range maxNameLooked {
		want := "[agent] []"
		if n == 0 || n == maxNameLooked-1 {
			if got := f.queueNamesOf(guest); got != want {
				t.Errorf("behind %d hidden sessions: names %s, want %s", n, got, want)
			}
		}
		f.dispatch(hidden.ID, DispatchIssueIn{AgentID: Some("agent")})
	}
	if got := f.queueNamesOf(guest); got != "[] []" {
		t.Errorf("behind %d hidden sessions: names %s", maxNameLooked, got)
	}
}
