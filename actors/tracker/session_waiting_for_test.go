package tracker

import (
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// reason returns what a session waits for, as GET, the list and its short form show it.
func (f *agentFixture) reason(credential string, id SessionID) string {
	f.Helper()
	w := decode[ShownSession](f, f.run(credential, SessionByID, &SessionByIDIn{ID: id}).Body).WaitingFor
	for _, summary := range []string{"0", "1"} {
		for _, s := range decode[SessionPage](f, f.run(credential, ListSessions, &ListSessionsIn{Limit: 100, Summary: summary}).Body).Sessions {
			if s.ID == id && describe(s.WaitingFor) != describe(w) {
				f.Errorf("session %s: GET says %s, the list with summary=%s %s", id, describe(w), summary, describe(s.WaitingFor))
			}
		}
	}
	return describe(w)
}

func describe(w *WaitingFor) string {
	if w == nil {
		return "nothing"
	}
	return fmt.Sprint(w.Reason, " ", w.On, " ", w.Hidden)
}

func (f *agentFixture) wantReason(id SessionID, want string) {
	f.Helper()
	if got := f.reason(f.admin, id); got != want {
		f.Errorf("the session waits for %s, want %s", got, want)
	}
}

func TestWaitingFor_EveryReason(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	dispatch := func(agent string, in DispatchIssueIn) DispatchedSession {
		in.AgentID = Some(agent)
		return f.dispatch(f.work(PriorityLow).ID, in)
	}
	idle := dispatch("a", DispatchIssueIn{})
	f.wantReason(idle.ID, "no_claimer [] 0")
	behind := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(idle.ID))}})
	f.wantReason(behind.ID, fmt.Sprintf("queued_after [%s] 0", idle.ID))
	later := dispatch("a", DispatchIssueIn{SessionOptions: SessionOptions{NotBefore: Some(string(At(f.now.Add(time.Hour))))}})
	f.wantReason(later.ID, "not_before [] 0")
	blocker, blocked := f.work(PriorityLow), f.work(PriorityLow)
	f.block(blocker.ID, blocked.ID)
	held := f.dispatch(blocked.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	f.wantReason(held.ID, fmt.Sprintf("blocked [%s] 0", blocker.ID))
	strict := dispatch("a", DispatchIssueIn{Preflight: true})
	f.wantReason(strict.ID, fmt.Sprintf("preflight %v 0", strict.Preflight.Missing))

	f.holdScope("agent:a", Opt[string]{})
	f.wantReason(idle.ID, "hold [agent:a] 0")
	f.wantReason(later.ID, "not_before [] 0")
	f.unhold("agent:a")
	f.wantReason(idle.ID, "no_claimer [] 0")

	first := dispatch("k", DispatchIssueIn{SessionOptions: SessionOptions{ConcurrencyKeys: Some([]string{"deploy"})}})
	second := dispatch("k", DispatchIssueIn{SessionOptions: SessionOptions{ConcurrencyKeys: Some([]string{"deploy"})}})
	f.claim(ClaimSessionsIn{AgentID: Some("k"), LeaseSeconds: 3600})
	f.wantReason(first.ID, "nothing")
	f.wantReason(second.ID, "concurrency [deploy] 0")
	f.wantTag(f.admin, second.ID, f.run(f.admin, CancelSession, &CancelSessionIn{ID: second.ID}))
	f.wantReason(second.ID, "nothing")

	back := dispatch("b", DispatchIssueIn{})
	f.claim(ClaimSessionsIn{AgentID: Some("b"), LeaseSeconds: 3600})
	f.wantTag(f.admin, back.ID, f.run(f.admin, ReleaseSession, &ReleaseSessionIn{ID: back.ID, ReleaseFields: ReleaseFields{Reason: "Later"}}))
	f.wantReason(back.ID, "no_claimer [] 0")

	small := f.register(CreateAgentIn{Name: "Small", MaxConcurrentSessions: Some(int64(1))}).ID
	running, full := dispatch(string(small), DispatchIssueIn{}), dispatch(string(small), DispatchIssueIn{})
	c := f.claim(ClaimSessionsIn{AgentID: Some(string(small)), LeaseSeconds: 3600})
	f.wantReason(full.ID, fmt.Sprintf("agent_full [%s] 0", small))
	other := f.work(PriorityLow)
	f.run(c[0].LaneToken, ReportSession, &ReportSessionIn{ID: running.ID, Status: Some(SessionWaiting), WaitFor: Some(allOf(
		WaitCondition{Session: string(idle.ID)}, WaitCondition{Issue: string(other.ID)}, WaitCondition{Reply: true}))})
	f.wantReason(running.ID, fmt.Sprintf("wait_for [%s %s] 0", idle.ID, other.ID))
	f.close(other.ID)
	f.wantReason(running.ID, fmt.Sprintf("wait_for [%s] 0", idle.ID))
	f.wantReason(full.ID, "no_claimer [] 0")
	f.verify()
}

// A caller that may not see an issue learns only how many there are.
func TestWaitingFor_CountsHiddenIssues(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	private := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "P", Key: "PRV", IsPublic: Some(false)})
	hidden, open, work := f.issue(f.admin, f.home.Workspace.ID, private.ID), f.work(PriorityLow), f.work(PriorityLow)
	f.block(hidden.ID, work.ID)
	f.block(open.ID, work.ID)
	s := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	secret := f.dispatch(hidden.ID, DispatchIssueIn{})
	behind := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(secret.ID))}})
	_, guest := f.member(f.home, RoleGuest, "write")
	if got, want := f.reason(guest, s.ID), fmt.Sprintf("blocked [%s] 1", open.ID); got != want {
		t.Errorf("a guest sees %s, want %s", got, want)
	}
	if got := f.reason(guest, behind.ID); got != "queued_after [] 1" {
		t.Errorf("a guest sees %s", got)
	}
	// A blocker that is closed changes the answer without a write to the session.
	tag := f.run(f.admin, SessionByID, &SessionByIDIn{ID: s.ID}).ETag
	if again := f.run(f.admin, SessionByID, &SessionByIDIn{ID: s.ID, IfNoneMatch: tag}); again.Outcome != NotModified {
		t.Errorf("an unchanged session is %v", again.Outcome)
	}
	f.close(open.ID)
	if again := f.run(f.admin, SessionByID, &SessionByIDIn{ID: s.ID, IfNoneMatch: tag}); again.Outcome == NotModified {
		t.Error("the ETag does not change with what the session waits for")
	}
	f.wantReason(s.ID, fmt.Sprintf("blocked [%s] 0", hidden.ID))
}

func TestWaitingFor_NamesAtMostTen(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	var ids []string
	for range 12 {
		ids = append(ids, string(f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{}).ID))
	}
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(ids...)}})
	f.wantReason(s.ID, fmt.Sprintf("queued_after %v 0", ids[:maxWaitingOn]))
}

// A session that a waiting claim could get waits for nothing.
func TestWaitingFor_ClaimsThatWait(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	s := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some("a"), Provider: Some("p")}).Body)
	for _, row := range []struct {
		waits Topic
		want  string
	}{
		{claimTopic("a", "p"), "nothing"}, {claimTopic("a", ""), "nothing"}, {claimTopic("", "p"), "nothing"}, {claimTopic("", ""), "nothing"},
		{claimTopic("b", ""), "no_claimer [] 0"}, {claimTopic("a", "q"), "no_claimer [] 0"}, {sessionTopic(storage.ID{1}), "no_claimer [] 0"},
	} {
		v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, nil)
		v.SeeClaimers(func(workspace storage.ID, of Topic) int {
			if workspace == w.workspace && of == row.waits {
				return 1
			}
			return 0
		})
		reply, err := SessionByID.RunQuery(v, &SessionByIDIn{ID: s.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(decode[ShownSession](t, reply.Body).WaitingFor); got != row.want {
			t.Errorf("with a claim for %q the session waits for %s, want %s", row.waits, got, row.want)
		}
	}
}

// A claim gives an agent no second session of an issue, so none waits that could get it.
func TestWaitingFor_AnAgentThatWorksOnTheIssue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow).ID
	first := f.dispatch(issue, DispatchIssueIn{AgentID: Some("a")})
	second := f.dispatch(issue, DispatchIssueIn{AgentID: Some("a")})
	want := func(want string) {
		t.Helper()
		v := NewView(f.view(f.home.Workspace.ID.raw()), &Caller{Level: Admin}, f.now, nil)
		v.SeeClaimers(func(_ storage.ID, of Topic) int {
			if of == claimTopic("a", "") {
				return 1
			}
			return 0
		})
		reply, err := SessionByID.RunQuery(v, &SessionByIDIn{ID: second.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(decode[ShownSession](t, reply.Body).WaitingFor); got != want {
			t.Errorf("the session waits for %s, want %s", got, want)
		}
	}
	want("nothing")
	lane := f.claim(ClaimSessionsIn{AgentID: Some("a"), LeaseSeconds: 3600})[0]
	want("no_claimer [] 0")
	f.run(lane.LaneToken, ReportSession, &ReportSessionIn{ID: first.ID, Status: Some(SessionCompleted)})
	want("nothing")
}
