package tracker

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

func (f *agentFixture) queue() QueueSummary {
	f.Helper()
	return decode[QueueSummary](f, f.run(f.admin, ReadQueue, &None{}).Body)
}

func TestReadQueue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	if q := f.queue(); q.OldestCreatedAt != nil || len(q.ByAgent) != 0 || len(q.ByKey) != 0 || q.Counts[SessionCreated] != 0 {
		t.Errorf("the queue of a new workspace is %+v", q)
	}
	small := string(f.register(CreateAgentIn{Name: "Small", MaxConcurrentSessions: Some(int64(1))}).ID)
	keyed := SessionOptions{ConcurrencyKeys: Some([]string{"deploy"})}
	first := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: keyed})
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some(small)})
	f.claim(ClaimSessionsIn{LeaseSeconds: 3600})
	f.claim(ClaimSessionsIn{LeaseSeconds: 3600})
	f.pass(time.Second)
	oldest := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: SessionOptions{NotBefore: Some(string(At(f.now.Add(time.Hour))))}})
	f.pass(time.Second)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: keyed})
	idle := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("b")})
	full := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some(small)})
	f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("b"), SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(first.ID))}})
	f.verify()
	q := f.queue()
	for status, n := range map[SessionStatus]uint64{SessionCreated: 4, SessionRunning: 2, SessionWaiting: 1, SessionCompleted: 0} {
		if q.Counts[status] != n {
			t.Errorf("%d are %s, want %d", q.Counts[status], status, n)
		}
	}
	for reason, n := range map[WaitingReason]uint64{
		WaitingNotBefore: 1, WaitingConcurrency: 1, WaitingNoClaimer: 1, WaitingAgentFull: 1, WaitingQueuedAfter: 1, WaitingHold: 0,
	} {
		if q.WaitingFor[reason] != n {
			t.Errorf("%d wait for %s, want %d", q.WaitingFor[reason], reason, n)
		}
	}
	if got, want := fmt.Sprint(q.ByKey), "[{deploy 1 1 1}]"; got != want {
		t.Errorf("by key: %s, want %s", got, want)
	}
	if q.OldestCreatedAt == nil || *q.OldestCreatedAt != oldest.CreatedAt {
		t.Errorf("the oldest is of %v, want %s", q.OldestCreatedAt, oldest.CreatedAt)
	}
	agents := map[string]string{}
	for _, a := range q.ByAgent {
		agents[a.AgentID] = fmt.Sprint(a.Created, a.Running, a.Waiting, *a.OldestCreatedAt)
	}
	want := map[string]string{"a": fmt.Sprint(2, 1, 0, oldest.CreatedAt), "b": fmt.Sprint(1, 0, 1, idle.CreatedAt), small: fmt.Sprint(1, 1, 0, full.CreatedAt)}
	if fmt.Sprint(agents) != fmt.Sprint(want) {
		t.Errorf("by agent: %v, want %v", agents, want)
	}
	f.restart()
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: first.ID})
	f.verify()
	if q := f.queue(); q.Counts[SessionCanceled] != 2 || q.Counts[SessionWaiting] != 0 || q.WaitingFor[WaitingConcurrency] != 0 {
		t.Errorf("after a cancelation: %+v", q)
	}
}

// The sessions of a workspace from before the counts are counted once, while it changes.
func TestReadQueue_CountsOlderWorkspaces(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	dispatch := func() DispatchedSession {
		issue := w.create(CreateIssueIn{})
		return decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some("a")}).Body)
	}
	var old []DispatchedSession
	for range countedAtOnce + 5 {
		old = append(old, dispatch())
	}
	forget := NewCommand[None, None]("forget", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for _, row := range [...]queueCountRow{{queueCountProgress, ""}, {queueCountStatus, "created"}, {queueCountAgent, "a"}, {queueCountQueued, "a"}} {
			if err := tx.Writer().DeleteValue(queueCountTable, storage.Key(nil).Byte(byte(row.kind)).Str(row.text)); err != nil {
				return Reply{}, err
			}
		}
		return Reply{Outcome: NoContent}, nil
	})
	w.run(&w.ann, forget, &None{})
	w.buffer.forget()
	count := func() {
		w.run(&w.ann, countSessionsOp, &TimerIn{Kind: timerCountSessions})
	}
	count()
	w.run(&w.ann, CancelSession, &CancelSessionIn{ID: old[0].ID})          // not counted yet
	w.run(&w.ann, CancelSession, &CancelSessionIn{ID: old[len(old)-1].ID}) // counted
	dispatch()
	w.buffer.forget()
	count()
	count()
	reply, err := w.ask(&w.ann, ReadQueue, &None{})
	if err != nil {
		t.Fatal(err)
	}
	q := decode[QueueSummary](t, reply.Body)
	if q.Counts[SessionCreated] != uint64(len(old)-1) || q.Counts[SessionCanceled] != 2 || q.ByAgent[0].Created != uint64(len(old)-1) || q.WaitingFor[WaitingNoClaimer] != uint64(len(old)-1) {
		t.Errorf("of %d sessions the counts are %+v", len(old)+1, q)
	}
}

// The oldest session of an agent is found among all priorities and among those that are parked,
// and not among those of agents with similar names.
func TestReadQueue_OldestOfManyAgents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newAgentFixture(rt)
		oldest := map[string]Timestamp{}
		for range rapid.IntRange(1, 12).Draw(rt, "sessions") {
			f.pass(time.Second)
			agent := rapid.SampledFrom([]string{"a", "a\x01", "aa", "b", "\u00ff"}).Draw(rt, "agent")
			in := DispatchIssueIn{AgentID: Some(agent)}
			if rapid.Bool().Draw(rt, "parked") {
				in.NotBefore = Some(string(At(f.now.Add(time.Hour))))
			}
			priority := rapid.SampledFrom([]IssuePriority{PriorityHigh, PriorityLow, PriorityUrgent}).Draw(rt, "priority")
			s := f.dispatch(f.work(priority).ID, in)
			if _, ok := oldest[agent]; !ok {
				oldest[agent] = s.CreatedAt
			}
		}
		found := map[string]Timestamp{}
		for _, a := range f.queue().ByAgent {
			found[a.AgentID] = *a.OldestCreatedAt
		}
		if !maps.Equal(found, oldest) {
			rt.Errorf("the oldest of each agent: %v, want %v", found, oldest)
		}
	})
}

// A dry run that would make the first session of a workspace leaves nothing behind, so the first
// session is counted with its dispatch.
func TestReadQueue_CountsTheFirstSessionAfterADryRun(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	var in BulkIssuesIn
	readBody(t, &in, `{"items": [{"title": "A", "dispatch": {}}], "dryRun": true}`)
	var faults Faults
	if in.Validate(&faults); !faults.Empty() {
		t.Fatal(faults.Err())
	}
	f.run(f.admin, CreateIssues, &in)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	if q := decode[QueueSummary](t, f.run(f.admin, ReadQueue, &None{}).Body); q.Counts[SessionCreated] != 1 || q.WaitingFor[WaitingNoClaimer] != 1 {
		t.Errorf("counts %v, waitingFor %v", q.Counts, q.WaitingFor)
	}
	f.verify()
}
