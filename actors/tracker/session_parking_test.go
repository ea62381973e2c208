package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNotBefore_IsNotClaimedEarlier(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	at := At(f.now.Add(time.Hour))
	later := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: Some(string(at))}})
	now := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	past := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: Some("2020-01-01T00:00:00Z")}})
	if later.Status != SessionCreated || later.NotBefore == nil || *later.NotBefore != at || now.NotBefore != nil || past.NotBefore == nil || *past.NotBefore <= "2026" {
		t.Fatalf("dispatched %+v, %v, %v", later.NotBefore, now.NotBefore, past.NotBefore)
	}
	f.verify()
	if got, want := claimedIDs(f.claim(ClaimSessionsIn{Limit: 50, LeaseSeconds: 3600})), fmt.Sprint([]SessionID{now.ID, past.ID}); got != want {
		t.Fatalf("claimed %s, want %s", got, want)
	}
	f.restart()
	f.pass(time.Hour - 30*time.Second)
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s too early", claimedIDs(got))
	}
	f.verify()
	f.pass(45 * time.Second)
	f.verify()
	if got := f.claim(ClaimSessionsIn{}); len(got) != 1 || got[0].Session.ID != later.ID {
		t.Fatalf("claimed %s when the time had come", claimedIDs(got))
	}
	f.verify()
}

func TestNotBefore_IsAtMostAYearAhead(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	for text, bad := range map[string]bool{
		string(At(f.now.AddDate(1, 0, 1))): true, string(At(f.now.AddDate(1, 0, -1))): false,
	} {
		in := DispatchIssueIn{ID: string(issue.ID), SessionOptions: SessionOptions{NotBefore: Some(text)}}
		_, err := f.try(f.admin, DispatchIssue, &in)
		var refused *Error
		if errors.As(err, &refused) != bad || bad && refused.Code != CodeBadRequest {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A broken limit is one of the whole batch.
	sessions := func() int {
		return len(decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{Limit: 100}).Body).Sessions)
	}
	count := sessions()
	_, err := f.try(f.admin, DispatchBatch, &DispatchBatchIn{Items: []DispatchItem{
		{IssueID: string(f.work(PriorityLow).ID)}, {IssueID: string(issue.ID), SessionOptions: SessionOptions{NotBefore: Some("2096-01-01T00:00:00Z")}},
	}})
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeBadRequest || !strings.Contains(err.Error(), "items[1].notBefore") {
		t.Errorf("an item a lifetime ahead: %v", err)
	}
	if n := sessions(); n != count {
		t.Errorf("a refused batch has made %d sessions", n-count)
	}
	f.verify()
}

// The time of maxDuration begins with the creation, also of a session that is put off.
func TestNotBefore_MaxDurationCounts(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	at := Some(string(At(f.now.Add(time.Hour))))
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: at, MaxDuration: Some(int64(30))}})
	long := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: at, MaxDuration: Some(int64(90))}})
	f.pass(29 * time.Minute)
	if got := f.session(s.ID); got.Status != SessionCreated {
		t.Fatalf("the session is %s", got.Status)
	}
	f.pass(time.Minute)
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
	f.pass(59 * time.Minute)
	if got := f.session(long.ID); got.Status != SessionCreated {
		t.Errorf("the other session is %s", got.Status)
	}
	f.pass(time.Minute)
	if got := f.session(long.ID); got.Status != SessionCanceled {
		t.Errorf("the other session is %s", got.Status)
	}
	f.verify()
}

// Many sessions with one time are released by several commands, none of which is too large.
func TestNotBefore_ManyAtOneTime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	at, all := Some(string(At(f.now.Add(time.Hour)))), maxReleased+50
	var issue Issue
	for i := range all {
		if i%900 == 0 {
			issue = f.work(PriorityLow)
		}
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i)), SessionOptions: SessionOptions{NotBefore: at}})
	}
	f.pass(2 * time.Hour)
	got := 0
	for n := -1; n != got; {
		n = got
		got += len(f.claim(ClaimSessionsIn{Limit: 50}))
	}
	if got != all {
		t.Errorf("claimed %d of %d", got, all)
	}
	f.verify()
}

// The sessions of one issue may be more than one command can write. A change of the issue moves
// those that it has room for, and a timer the rest.
func TestPlaceSessions_OfAnIssueInSteps(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	schema := []byte(`{"description": "` + strings.Repeat("x", 30<<10) + `"}`)
	issue := f.work(PriorityLow)
	const all = 380 // more than maxCommandBytes together
	for n := range all {
		in := DispatchIssueIn{AgentID: Some(fmt.Sprint(n)), SessionOptions: SessionOptions{ResultSchema: schema}}
		var faults Faults
		if in.Validate(&faults); !faults.Empty() {
			t.Fatal(faults.Err())
		}
		f.dispatch(issue.ID, in)
	}
	parked := func() uint64 { return f.queue().WaitingFor[WaitingBudget] }
	other := f.work(PriorityHigh)
	waits := f.dispatch(other.ID, DispatchIssueIn{})
	change := func(fields IssueFields) {
		t.Helper()
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: fields}})
		f.verify()
	}
	change(IssueFields{Priority: Some(PriorityUrgent)})
	f.pass(time.Second)
	f.verify()
	change(IssueFields{Priority: Some(PriorityLow)})
	f.restart()
	f.pass(time.Second)
	if got := f.claimOne(); got.Session.ID != waits.ID {
		t.Errorf("a session of a less urgent issue is claimed first")
	}
	f.verify()

	spender := f.work(PriorityLow)
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(spender.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: Some("bridge")}}})
	f.putBudget("project:bridge", 1, -1, BudgetTotal)
	f.beat(f.start(spender, "spender"), 2)
	change(IssueFields{ProjectID: Some("bridge")})
	if n := parked(); n == 0 || n >= all {
		t.Errorf("the change parks %d sessions", n)
	}
	f.pass(time.Second)
	if n := parked(); n != all {
		t.Errorf("%d sessions are parked", n)
	}
	f.verify()
	change(IssueFields{ProjectID: Opt[string]{Set: true, Null: true}})
	f.pass(time.Second)
	if n := parked(); n != 0 {
		t.Errorf("%d sessions are still parked", n)
	}
	f.verify()
}
