package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

func (f *agentFixture) attempts(id SessionID) []SessionAttempt {
	f.Helper()
	return decode[SessionAttempts](f, f.run(f.admin, ListAttempts, &ListAttemptsIn{ID: id}).Body).Attempts
}

// ends lists how the attempts at a session ended.
func (f *agentFixture) ends(id SessionID) (ends []string) {
	f.Helper()
	for i, a := range f.attempts(id) {
		end := "null"
		if a.End != nil {
			end = string(*a.End)
		}
		if a.Number != i+1 || (a.End == nil) != (a.EndedAt == nil) {
			f.Errorf("attempt %d is %+v", i+1, a)
		}
		ends = append(ends, end)
	}
	return ends
}

// fail reports a failure with the lane of a claim.
func (f *agentFixture) fail(c ClaimedSession, reason string) ShownSession {
	f.Helper()
	in := &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionFailed), FailureReason: Some(reason)}
	return decode[ShownSession](f, f.run(c.LaneToken, ReportSession, in).Body)
}

func retrying(p RetryIn) DispatchIssueIn {
	return DispatchIssueIn{SessionOptions: SessionOptions{Retry: Some(p)}}
}

func TestRetry_AfterFailuresWithBackoff(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, retrying(RetryIn{MaxAttempts: Some(int64(4)), BackoffSeconds: Some(int64(60)), MaxBackoffSeconds: Some(int64(100)), On: Some([]string{"failed", "lapsed"})}))
	if s.Retry == nil || s.Retry.MaxAttempts != 4 {
		t.Fatalf("dispatched with %+v", s.Retry)
	}
	for n, wait := range []time.Duration{time.Minute, 100 * time.Second, 100 * time.Second} {
		c := f.claimOne()
		if c.Attempt != n+1 {
			t.Errorf("claim %d is attempt %d", n+1, c.Attempt)
		}
		before := len(f.events())
		got := f.fail(c, "rate_limited")
		// The result was null and still is.
		if changes := f.events()[before].Changes; changes["status"].To == nil || changes["structuredResult"].To != nil {
			t.Errorf("status to %s, structuredResult to %s", changes["status"].To, changes["structuredResult"].To)
		}
		if got.Status != SessionCreated || *got.FailureReason != "rate_limited" || got.NotBefore == nil || *got.NotBefore != At(f.now.Add(wait)) {
			t.Fatalf("after failure %d: %s, %v, %v", n+1, got.Status, got.FailureReason, got.NotBefore)
		}
		// The same report again is refused for every caller.
		for _, credential := range []string{c.LaneToken, f.admin} {
			_, err := f.try(credential, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionFailed), FailureReason: Some("rate_limited")})
			wantConflict(t, err, SessionCreated, false)
		}
		if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
			t.Fatal("claimed before its time")
		}
		f.pass(wait)
		f.verify()
	}
	c := f.claimOne()
	if c.LastAttempt == nil || *c.LastAttempt.End != AttemptFailed || *c.LastAttempt.FailureReason != "rate_limited" || c.Session.FailureReason != nil {
		t.Errorf("the last claim says %+v", c.LastAttempt)
	}
	events := len(f.events())
	if got := f.fail(c, "out_of_memory"); got.Status != SessionFailed || got.DeadLetteredAt == nil || *got.FailureReason != "out_of_memory" {
		t.Fatalf("at last %s, %v", got.Status, got.DeadLetteredAt)
	}
	if got := fmt.Sprint(f.happened(events)); got != "[session.dead_lettered failed session.ended failed]" {
		t.Error(got)
	}
	// The report that ended it can be repeated.
	f.fail(c, "out_of_memory")
	if got := fmt.Sprint(f.ends(s.ID)); got != "[failed failed failed failed]" {
		t.Error(got)
	}
	f.verify()
}

// The report of a failure may be repeated when another claimer has the session. It must not end
// the attempt of that one.
func TestRetry_RepeatedReportOfAnEarlierClaimer(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]struct {
		goesOn func(f *agentFixture, c ClaimedSession)
		status SessionStatus
	}{
		"running": {func(*agentFixture, ClaimedSession) {}, SessionRunning},
		"waiting": {func(f *agentFixture, c ClaimedSession) {
			f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionWaiting), WaitFor: Some(anyOf(WaitCondition{Reply: true}))})
		}, SessionWaiting},
		"queued again": {func(f *agentFixture, c ClaimedSession) {
			f.run(c.LaneToken, ReleaseSession, &ReleaseSessionIn{ID: c.Session.ID, ReleaseFields: ReleaseFields{Reason: "Later."}})
		}, SessionCreated},
	} {
		f := newAgentFixture(t)
		s := f.dispatch(f.work(PriorityLow).ID, retrying(RetryIn{On: Some([]string{"failed"})}))
		_, member := f.testService.member(f.home, RoleMember, "write")
		failed := func(credential string) error { return f.report(credential, s.ID, SessionFailed) }
		if _, err := f.try(member, ClaimSessions, &ClaimSessionsIn{}); err != nil {
			t.Fatal(err)
		}
		if err := failed(member); err != nil {
			t.Fatal(err)
		}
		c := f.claimOne()
		next.goesOn(f, c)
		err := failed(member)
		if got := f.session(s.ID); err == nil || got.Status != next.status {
			t.Errorf("%s: %v, and the session is %s", name, err, got.Status)
			continue
		}
		wantConflict(t, err, next.status, next.status == SessionRunning)
		f.verify()
		// Another actor may end the attempt, as ever.
		if next.status != SessionCreated {
			if err := failed(f.admin); err != nil {
				t.Errorf("%s: reported by an admin: %v", name, err)
			}
		}
		f.verify()
	}
}

// A claimer may fail twice in the same way, with its own token or with the lane token.
func TestRetry_FailsTwiceInTheSameWay(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, retrying(RetryIn{MaxAttempts: Some(int64(5)), On: Some([]string{"failed"})}))
	_, member := f.testService.member(f.home, RoleMember, "write")
	for n := range 4 {
		c := decode[ClaimedSessions](t, f.run(member, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions[0]
		credential := member
		if n%2 == 1 {
			credential = c.LaneToken
		}
		if err := f.report(credential, s.ID, SessionFailed); err != nil {
			t.Fatalf("failure %d: %v", n+1, err)
		}
		wantConflict(t, f.report(credential, s.ID, SessionFailed), SessionCreated, false)
		f.verify()
	}
	if got := fmt.Sprint(f.ends(s.ID)); got != "[failed failed failed failed]" {
		t.Error(got)
	}
}

func TestRetry_WhatIsNotRetried(t *testing.T) {
	t.Parallel()
	both := RetryIn{On: Some([]string{"failed", "lapsed"})}
	for name, row := range map[string]struct {
		policy RetryIn
		report ReportSessionIn
	}{
		"failures by default":         {RetryIn{}, ReportSessionIn{Status: Some(SessionFailed)}},
		"a failure not to be retried": {both, ReportSessionIn{Status: Some(SessionFailed), Retryable: Some(false)}},
		"a last one not to be retried": {
			RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})}, ReportSessionIn{Status: Some(SessionFailed), Retryable: Some(false)},
		},
	} {
		f := newAgentFixture(t)
		s := f.dispatch(f.work(PriorityLow).ID, retrying(row.policy))
		c := f.claimOne()
		row.report.ID = s.ID
		got := decode[ShownSession](t, f.run(c.LaneToken, ReportSession, &row.report).Body)
		if got.Status != SessionFailed || got.DeadLetteredAt != nil {
			t.Errorf("%s: %s, %v", name, got.Status, got.DeadLetteredAt)
		}
		f.verify()
	}
}

func TestRetry_Lapses(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", Retry: Some(RetryIn{MaxAttempts: Some(int64(1))})})
	own := f.dispatch(f.work(PriorityUrgent).ID, retrying(RetryIn{On: Some([]string{})}))
	agents := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some(string(agent.ID))})
	f.claim(ClaimSessionsIn{Limit: 2, LeaseSeconds: 10})
	f.pass(time.Minute)
	for _, id := range []SessionID{own.ID, agents.ID} {
		if s := f.session(id); s.Status != SessionFailed || s.DeadLetteredAt == nil || s.FailureReason != nil {
			t.Errorf("%+v", s)
		}
	}
	page := decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{DeadLettered: Some(true)}).Body).Sessions
	if len(page) != 2 {
		t.Errorf("%d dead letters are listed", len(page))
	}
	if page := decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{DeadLettered: Some(false)}).Body).Sessions; len(page) != 0 {
		t.Errorf("%d others are listed", len(page))
	}
	f.verify()
}

func TestRetrySession_FromZero(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := retrying(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})})
	in.MaxDuration = Some(int64(5))
	issue := f.work(PriorityLow)
	s := f.dispatch(issue.ID, in)
	retry := func() (Reply, error) { return f.try(f.admin, RetrySession, &RetrySessionIn{ID: s.ID}) }
	_, err := retry()
	wantConflict(t, err, SessionCreated, false)
	c := f.claimOne()
	f.fail(c, "x")
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityUrgent)}}})
	reply, err := retry()
	if got := decode[ShownSession](t, reply.Body); err != nil || got.Status != SessionCreated || got.DeadLetteredAt != nil || got.FailureReason != nil {
		t.Fatalf("retried: %v, %s", err, reply.Body)
	}
	f.verify()
	wantConflict(t, f.report(c.LaneToken, s.ID, SessionFailed), SessionCreated, false)
	if c := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0]; c.Attempt != 1 || c.LastAttempt == nil || c.LastAttempt.Number != 1 {
		t.Errorf("claimed attempt %d after %+v", c.Attempt, c.LastAttempt)
	}
	// The time of maxDuration began anew, and its end is that of the session.
	f.pass(4 * time.Minute)
	f.pass(time.Minute)
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
	if _, err := retry(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(f.ends(s.ID)); got != "[failed canceled]" {
		t.Error(got)
	}
	f.verify()
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	_, err = retry()
	wantConflict(t, err, SessionCanceled, false)
	f.verify()
}

// A session that was put off can be reported as running before its time: maxDuration counts from
// then on, although the timer was set for later.
func TestMaxDuration_CountsWhenASessionRunsBeforeItsTime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{MaxDuration: Some(int64(1))}})
	f.claimOne()
	f.run(f.admin, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "later", RetryAfterSeconds: Some(int64(3600))}})
	f.pass(2 * time.Minute)
	if err := f.report(f.admin, s.ID, SessionRunning); err != nil {
		t.Fatal(err)
	}
	f.pass(59 * time.Second)
	if got := f.session(s.ID); got.Status != SessionRunning {
		t.Fatalf("the session is %s", got.Status)
	}
	f.pass(2 * time.Second)
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s past its maxDuration", got.Status)
	}
	f.verify()
}

func TestMaxDuration_CountsAnewWithEachAttempt(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := retrying(RetryIn{BackoffSeconds: Some(int64(600)), On: Some([]string{"failed"})})
	in.MaxDuration = Some(int64(5))
	s := f.dispatch(f.work(PriorityLow).ID, in)
	f.fail(f.claimOne(), "x")
	f.pass(14 * time.Minute) // ten of them before it can be claimed
	if got := f.session(s.ID); got.Status != SessionCreated {
		t.Fatalf("the session is %s", got.Status)
	}
	c := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})
	f.pass(4 * time.Minute)
	if got := f.session(s.ID); got.Status != SessionRunning || len(c) != 1 {
		t.Fatalf("the session is %s", got.Status)
	}
	f.pass(time.Minute)
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
	f.verify()
}

func TestRetry_NoMoreChildrenThanAParentMayHave(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", Retry: Some(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})})})
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("parent")})
	parent := f.claimOne()
	spawn := func() (SessionID, error) {
		reply, err := f.try(parent.LaneToken, SpawnSession, &SpawnSessionIn{ID: parent.Session.ID, Title: "Part", AgentID: Some(string(agent.ID))})
		if err != nil {
			return "", err
		}
		return decode[SpawnedSession](t, reply.Body).Session.ID, nil
	}
	retry := func(id SessionID) error {
		_, err := f.try(f.admin, RetrySession, &RetrySessionIn{ID: id})
		return err
	}
	var all []SessionID
	for n := range 12 {
		id, err := spawn()
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, id); n < 2 {
			f.fail(f.claimOne(), "x")
		}
	}
	_, err := spawn()
	wantCode(t, err, CodeTooManyRequests)
	wantCode(t, retry(all[0]), CodeTooManyRequests)
	redriven := func() int {
		return decode[RedrivenSessions](t, f.run(f.admin, RedriveSessions, &RedriveSessionsIn{}).Body).Redriven
	}
	if got := redriven(); got != 0 {
		t.Errorf("%d were retried beyond the limit", got)
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: all[2]})
	if got := redriven(); got != 1 {
		t.Errorf("%d were retried, and there was a place for one", got)
	}
	f.verify()
	if err := f.report(parent.LaneToken, parent.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if err := retry(all[0]); err != nil {
		t.Errorf("below a parent that has ended: %v", err)
	}
	f.verify()
}

func TestRetrySession_DoesNotWaitForTheBackoff(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, retrying(RetryIn{BackoffSeconds: Some(int64(3600)), On: Some([]string{"failed"})}))
	again := func(id SessionID) ShownSession {
		f.run(f.admin, CancelSession, &CancelSessionIn{ID: id})
		return decode[ShownSession](t, f.run(f.admin, RetrySession, &RetrySessionIn{ID: id}).Body)
	}
	if got := f.fail(f.claimOne(), "x"); got.NotBefore == nil {
		t.Fatalf("failed: %+v", got)
	}
	if got := again(s.ID); got.NotBefore != nil || got.Status != SessionCreated {
		t.Errorf("retried: %s, not before %v", got.Status, got.NotBefore)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{}); len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("claimed %s", claimedIDs(got))
	}
	// The time of a dispatch still counts if the session was never claimed.
	at := string(At(f.now.Add(time.Hour)))
	later := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: Some(at)}})
	if got := again(later.ID); got.NotBefore == nil || string(*got.NotBefore) != at {
		t.Errorf("retried before its time: %v", got.NotBefore)
	}
	f.verify()
}

func TestAttempts_TheLastFifty(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	if got := f.attempts(s.ID); len(got) != 0 {
		t.Errorf("before a claim: %+v", got)
	}
	for range 60 {
		c := f.claimOne()
		f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("Hi")}})
		f.run(c.LaneToken, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "Later"}})
	}
	f.claimOne()
	all := f.attempts(s.ID)
	if len(all) != 50 || all[0].Number != 12 || all[49].Number != 61 || all[49].End != nil || all[49].LastActivity != nil {
		t.Fatalf("%d attempts, %+v", len(all), all[len(all)-1])
	}
	if last := all[48]; *last.End != AttemptReleased || last.LastActivity == nil || last.LastActivity.Message != "Hi" || last.ClaimerID != all[49].ClaimerID {
		t.Errorf("%+v", last)
	}
	f.verify()
}

func TestPlan_IsReplaced(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	if got := f.run(f.admin, SessionByID, &SessionByIDIn{ID: s.ID}).Body; json.Valid(got) != true || f.session(s.ID).Plan != nil {
		t.Errorf("%s", got)
	}
	c := f.claimOne()
	steps := []PlanStep{{"1", "Look", "completed"}, {"2", `Say ,"plan":true`, "pending"}}
	reply := f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, Plan: Some(steps)})
	if got := decode[LoggedActivities](t, reply.Body); len(got.Activities) != 0 || got.LeaseExpiresAt == nil {
		t.Errorf("%s", reply.Body)
	}
	if got := f.session(s.ID).Plan; got == nil || !slices.Equal(*got, steps) {
		t.Errorf("the plan is %+v", got)
	}
	events := f.events()
	if last := events[len(events)-1]; last.Type != "session.updated" || string(last.Changes["plan"].From) != "null" {
		t.Errorf("the event is %+v", last)
	}
	f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionCompleted), Plan: Some([]PlanStep{})})
	if got := f.session(s.ID).Plan; got == nil || len(*got) != 0 {
		t.Errorf("the plan is %+v", got)
	}
	f.verify()
}

// A registered session that is retried waits for claims like any other, and the actor that
// registered it gets no lane beside the claimer's.
func TestRetrySession_ThatWasRegisteredIsQueued(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	r := f.registerAs(f.admin, f.work(PriorityLow).ID, "elsewhere")
	if err := f.report(*r.LaneToken, r.Session.ID, SessionFailed); err != nil {
		t.Fatal(err)
	}
	f.run(f.admin, RetrySession, &RetrySessionIn{ID: r.Session.ID})
	f.wantReason(r.Session.ID, "no_claimer [] 0")
	if again := f.registerAs(f.admin, r.Session.IssueID, "elsewhere"); again.Session.ID != r.Session.ID || again.LaneToken != nil {
		t.Errorf("registered again: %+v", again)
	}
	if c := f.claimOne(); c.Session.ID != r.Session.ID {
		t.Errorf("claimed %s", c.Session.ID)
	}
	f.verify()
}
