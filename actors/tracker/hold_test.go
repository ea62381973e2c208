package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func (f *agentFixture) holdScope(scope string, until Opt[string]) Hold {
	f.Helper()
	return decode[ShownHold](f, f.run(f.admin, PutHold, &PutHoldIn{HoldIn: HoldIn{Scope: scope}, Reason: "because", Until: until}).Body).Hold
}

func (f *agentFixture) unhold(scope string) {
	f.Helper()
	f.run(f.admin, DeleteHold, &HoldIn{Scope: scope})
}

func TestHold_KeepsSessionsFromBeingClaimed(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"workspace", "agent:a", "provider:p"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			f := newAgentFixture(t)
			f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some("p")})
			running := f.claimOne()
			queued := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some("p")})
			other := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("b"), Provider: Some("q")})
			f.holdScope(scope, Opt[string]{})
			f.verify()
			late := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some("p")})
			f.restart()
			want := []SessionID{other.ID}
			if scope == "workspace" {
				want = nil
			}
			if got := claimedIDs(f.claim(ClaimSessionsIn{Limit: 50})); got != fmt.Sprint(want) {
				t.Fatalf("claimed %s, want %v", got, want)
			}
			if err := f.report(running.LaneToken, running.Session.ID, SessionCompleted); err != nil {
				t.Fatalf("a running session of the scope: %v", err)
			}
			f.verify()
			f.unhold(scope)
			f.verify()
			want = []SessionID{late.ID, queued.ID}
			if scope == "workspace" {
				want = append(want, other.ID)
			}
			if got := claimedIDs(f.claim(ClaimSessionsIn{Limit: 50})); got != fmt.Sprint(want) {
				t.Fatalf("claimed %s, want %v", got, want)
			}
			f.verify()
		})
	}
}

func TestHold_EndsAtItsTime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	f.holdScope("workspace", Some(string(At(f.now.Add(time.Minute)))))
	f.holdScope("agent:a", Some(string(At(f.now.Add(2*time.Minute)))))
	from := len(f.events())
	f.pass(90 * time.Second)
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s while one hold lasts", claimedIDs(got))
	}
	f.verify()
	f.pass(time.Minute)
	f.verify()
	if got := f.happened(from); len(got) != 2 || !strings.HasPrefix(got[0], "hold.ended") || !strings.HasPrefix(got[1], "hold.ended") {
		t.Errorf("events %v", got)
	}
	if got := f.claimOne(); got.Session.ID != s.ID {
		t.Errorf("claimed %s", got.Session.ID)
	}
	if list := decode[HoldList](t, f.run(f.admin, ListHolds, &None{}).Body).Holds; len(list) != 0 {
		t.Errorf("holds %v", list)
	}
}

// The id of an agent may have any character except NUL, so also one that keys escape.
func TestHold_EndsAtItsTimeForAnyAgent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const agent = "a\x01b"
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some(agent)})
	f.holdScope(scopeAgent+agent, Some(string(At(f.now.Add(time.Minute)))))
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s during the hold", claimedIDs(got))
	}
	f.pass(2 * time.Minute)
	f.verify()
	if got := f.claimOne(); got.Session.ID != s.ID {
		t.Errorf("claimed %s", got.Session.ID)
	}
}

func TestHold_ByAdminsAndTheAgentItself(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	bot := f.token(f.home, &CreateTokenIn{AgentID: "bot"})
	_, member := f.member(f.home, RoleMember, "write")
	for _, c := range []struct {
		credential, scope string
		ok                bool
	}{{bot, "agent:bot", true}, {bot, "agent:other", false}, {bot, "workspace", false}, {member, "agent:bot", false}, {member, "workspace", false}} {
		_, err := f.try(c.credential, PutHold, &PutHoldIn{HoldIn: HoldIn{Scope: c.scope}, Reason: "x"})
		if refused := (*Error)(nil); c.ok != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Code != CodeForbidden) {
			t.Errorf("%s: %v", c.scope, err)
		}
	}
	if _, err := f.try(member, DeleteHold, &HoldIn{Scope: "agent:bot"}); err == nil {
		t.Error("a member ended a hold")
	}
	f.run(bot, DeleteHold, &HoldIn{Scope: "agent:bot"})
	if _, err := f.try(bot, DeleteHold, &HoldIn{Scope: "agent:bot"}); err == nil {
		t.Error("ended a hold that is not there")
	}
	past := PutHoldIn{HoldIn: HoldIn{Scope: "workspace"}, Reason: "x", Until: Some(string(At(f.now.Add(-time.Minute))))}
	if _, err := f.try(f.admin, PutHold, &past); err == nil {
		t.Error("a hold that has ended was taken")
	}
	f.verify()
}

// A hold of more sessions than a command parks goes on by timer, and so does its end.
func TestHold_OfManySessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	all := maxReleased + 30
	var issue Issue
	for i := range all {
		if i%900 == 0 {
			issue = f.work(PriorityLow)
		}
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i))})
	}
	f.holdScope("workspace", Opt[string]{})
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s before all were parked", claimedIDs(got))
	}
	f.pass(time.Second)
	f.verify()
	if n := f.rows(sessionQueue); n != 0 {
		t.Fatalf("%d sessions of a held workspace are in the claim queue", n)
	}
	f.unhold("workspace")
	f.pass(time.Second)
	if n := f.rows(sessionQueue); n != all {
		t.Fatalf("%d of %d sessions are back in the claim queue", n, all)
	}
	f.verify()
}

func TestHold_IsAudited(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.holdScope("agent:a", Opt[string]{})
	f.holdScope("agent:a", Some(string(At(f.now.Add(time.Hour)))))
	f.unhold("agent:a")
	f.holdScope("workspace", Some(string(At(f.now.Add(time.Minute)))))
	f.pass(time.Hour) // nobody ends it
	f.run(f.admin, PutConcurrencyLimit, &PutConcurrencyLimitIn{ConcurrencyLimitIn: ConcurrencyLimitIn{"k"}, Limit: 2})
	f.run(f.admin, DeleteConcurrencyLimit, &ConcurrencyLimitIn{"k"})
	got := actions(decode[AuditPage](t, f.run(f.admin, ListAudit, &ListAuditIn{}).Body))
	want := []string{"limit.deleted k", "limit.created k", "hold.created workspace", "hold.ended agent:a", "hold.updated agent:a", "hold.created agent:a"}
	if len(got) < len(want) || fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
