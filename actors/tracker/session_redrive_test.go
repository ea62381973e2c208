package tracker

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"testing"
)

func TestRedrive(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for n := range 6 {
		in := retrying(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})})
		in.AgentID = Some([]string{"a", "b"}[n%2])
		f.dispatch(f.work(PriorityLow).ID, in)
		f.fail(f.claimOne(), []string{"x", "y", "z"}[n/2])
	}
	_, guest := f.testService.member(f.home, RoleGuest, "write")
	private := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "P", Key: "PRV", IsPublic: Some(false)})
	f.dispatch(f.issue(f.admin, f.home.Workspace.ID, private.ID).ID, retrying(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})}))
	f.fail(f.claimOne(), "x")
	redriven := func(credential string, in RedriveSessionsIn) int {
		return decode[RedrivenSessions](t, f.run(credential, RedriveSessions, &in).Body).Redriven
	}
	for _, row := range []struct {
		in   RedriveSessionsIn
		want int
	}{
		{RedriveSessionsIn{FailureReason: Some("no")}, 0},
		{RedriveSessionsIn{AgentID: Some("a"), FailureReason: Some("x")}, 1},
		{RedriveSessionsIn{AgentID: Some("a"), FailureReason: Some("x")}, 0},
		{RedriveSessionsIn{AgentID: Some("b"), Limit: 2}, 2},
		{RedriveSessionsIn{}, 3},
	} {
		if got := redriven(guest, row.in); got != row.want {
			t.Errorf("%+v: %d, want %d", row.in, got, row.want)
		}
		f.verify()
	}
	if got := redriven(f.admin, RedriveSessionsIn{}); got != 1 {
		t.Errorf("%d that a guest doesn't see", got)
	}
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 7 {
		t.Errorf("claimed %d", len(got))
	}
	f.verify()
}

// A dead letter that can't be retried is passed over, and isn't counted.
func TestRedrive_PassesOverAnArchivedIssue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	var issues []IssueID
	for range 2 {
		issues = append(issues, f.work(PriorityLow).ID)
		f.dispatch(issues[len(issues)-1], retrying(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})}))
		f.fail(f.claimOne(), "x")
	}
	f.setStatus(issues[1], StatusDone)
	f.run(f.admin, archiveOp, &UnarchiveIssueIn{ID: string(issues[1])})
	for _, want := range []int{1, 0} {
		if got := decode[RedrivenSessions](t, f.run(f.admin, RedriveSessions, &RedriveSessionsIn{}).Body).Redriven; got != want {
			t.Errorf("%d were retried, want %d", got, want)
		}
		f.verify()
	}
	f.run(f.admin, UnarchiveIssue, &UnarchiveIssueIn{ID: string(issues[1])})
	if got := decode[RedrivenSessions](t, f.run(f.admin, RedriveSessions, &RedriveSessionsIn{}).Body).Redriven; got != 1 {
		t.Errorf("%d were retried after the issue came back", got)
	}
	f.verify()
}

// deadLetters makes dead letters of an issue, oldest first.
func (f *agentFixture) deadLetters(issue IssueID, n int) (ids []SessionID) {
	f.Helper()
	for range n {
		f.dispatch(issue, retrying(RetryIn{MaxAttempts: Some(int64(1)), On: Some([]string{"failed"})}))
		c := f.claimOne()
		f.fail(c, "x")
		ids = append(ids, c.Session.ID)
	}
	return ids
}

// archive closes an issue and archives it, as a sweep does.
func (f *agentFixture) archive(issue IssueID) {
	f.Helper()
	f.setStatus(issue, StatusDone)
	f.run(f.admin, archiveOp, &UnarchiveIssueIn{ID: string(issue)})
}

// Dead letters that can't be retried use up neither the limit nor a batch.
func TestRedrive_GoesOnBehindRefusedOnes(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	redriven := func(in RedriveSessionsIn) int {
		return decode[RedrivenSessions](t, f.run(f.admin, RedriveSessions, &in).Body).Redriven
	}
	good, archived := f.work(PriorityLow).ID, f.work(PriorityLow).ID
	f.deadLetters(good, maxBudgetRecords+20)
	f.deadLetters(archived, maxBudgetRecords+1)
	f.archive(archived)
	for _, row := range []struct {
		in   RedriveSessionsIn
		want int
	}{
		{RedriveSessionsIn{Limit: 1, passed: maxRedrivePassed}, 0}, // enough were passed over in earlier batches
		{RedriveSessionsIn{Limit: 1}, 1},
		{RedriveSessionsIn{Limit: 2}, 2},
		{RedriveSessionsIn{Limit: 1000}, maxBudgetRecords + 17}, // in two batches
		{RedriveSessionsIn{Limit: 1000}, 0},
	} {
		if got := redriven(row.in); got != row.want {
			t.Errorf("limit %d: %d were retried, want %d", row.in.Limit, got, row.want)
		}
	}
	f.verify()
}

// A redrive ends where the workspace has no room for further sessions, and counts those before.
func TestRedrive_EndsAtTheLimitOfSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	all := maxBudgetRecords + 20
	f.deadLetters(f.work(PriorityLow).ID, all)
	redriven := func(limit int) int {
		return decode[RedrivenSessions](t, f.run(f.admin, RedriveSessions, &RedriveSessionsIn{Limit: limit}).Body).Redriven
	}
	for _, room := range []int64{2, maxBudgetRecords + 10} { // in one batch, and in two
		f.putLimits(f.home.Workspace.ID, LimitsIn{Sessions: Some(room)})
		used := f.used(f.home.Workspace.ID).Sessions
		if got := redriven(1000); int64(got)+int64(used) != room {
			t.Errorf("%d were retried beside %d, want %d in all", got, used, room)
		}
		_, err := f.try(f.admin, RedriveSessions, &RedriveSessionsIn{})
		wantLimit(t, err, "sessions", uint64(room))
		f.verify()
	}
}

// firstBatch runs the first batch of a command that goes on in another one, and stops the node then.
func (f *agentFixture) firstBatch(op *Op, in any, key string) {
	f.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		f.Fatal(err)
	}
	org := f.home.Workspace.ID
	req := &Request{
		Workspace: org.raw(), Credential: f.admin,
		Idempotency: &Idempotency{Key: key, Fingerprint: sha256.Sum256(slices.Concat(body, []byte(op.Name+string(org))))},
	}
	if err := f.admit(req, op); err != nil {
		f.Fatal(err)
	}
	l := f.bufferOf(req.Workspace)
	if reply, err := l.Run(op, req, in, f.now); err != nil || !reply.More {
		f.Fatalf("%+v, %v", reply, err)
	}
	commitBuffer(f, f.db, l)
	f.restart()
}

// A repeat of a redrive that was interrupted between two batches retries nothing more, and answers the
// number of those that were retried.
func TestRedrive_RepeatAfterAnInterruption(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const beyond = 20
	f.deadLetters(f.work(PriorityLow).ID, maxBudgetRecords+beyond)
	in := func() *RedriveSessionsIn { return &RedriveSessionsIn{Limit: 1000} }
	f.firstBatch(RedriveSessions, in(), "interrupted")
	for _, row := range []struct {
		key      string
		want     int
		replayed bool
	}{{"interrupted", maxBudgetRecords, true}, {"next", beyond, false}, {"interrupted", maxBudgetRecords, true}} {
		reply := f.must(f.admin, f.home.Workspace.ID, RedriveSessions, in(), row.key)
		if got := decode[RedrivenSessions](t, reply.Body).Redriven; got != row.want || reply.Replayed != row.replayed {
			t.Errorf("%s: %d were retried, replayed: %v; want %d, %v", row.key, got, reply.Replayed, row.want, row.replayed)
		}
	}
	f.verify()
}

// The answer that is kept for the key of a redrive is that of its last batch.
func TestRedrive_RepeatOfSeveralBatches(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	all := maxBudgetRecords + 2
	f.deadLetters(f.work(PriorityLow).ID, all)
	for _, replayed := range []bool{false, true} {
		reply := f.must(f.admin, f.home.Workspace.ID, RedriveSessions, &RedriveSessionsIn{Limit: 1000}, "k")
		if got := decode[RedrivenSessions](t, reply.Body).Redriven; got != all || reply.Replayed != replayed {
			t.Errorf("%d were retried, replayed: %v; want %d, %v", got, reply.Replayed, all, replayed)
		}
	}
	f.verify()
}
