package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

const day = 24 * time.Hour

// retain sets the retention of a fixture's workspace.
func (f *agentFixture) retain(in PutRetentionIn) {
	f.Helper()
	f.run(f.admin, PutRetention, &in)
}

func (f *agentFixture) setStatus(id IssueID, s IssueStatus) {
	f.Helper()
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(id), IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(s)}}})
}

func (f *agentFixture) isArchived(id IssueID) bool {
	f.Helper()
	return f.issueNow(id).ArchivedAt != nil
}

func TestRetention_IsReplaced(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	show := func() string { return string(f.run(f.admin, GetRetention, &None{}).Body) }
	const first = `{"endedSessionsDays":null,"deliveriesDays":null,"closedIssuesDays":null,"closedIssues":"archive"}`
	if got := show(); got != first {
		t.Errorf("at first it is %s", got)
	}
	f.retain(PutRetentionIn{EndedSessionsDays: Some(int64(0)), ClosedIssues: Some(DeleteClosed)})
	if got, want := show(), `{"endedSessionsDays":0,"deliveriesDays":null,"closedIssuesDays":null,"closedIssues":"delete"}`; got != want {
		t.Errorf("then it is %s", got)
	}
	f.verify()
	f.retain(PutRetentionIn{})
	if got := show(); got != first {
		t.Errorf("replaced by nothing it is %s", got)
	}
	f.verify()
	entries := decode[AuditPage](t, f.run(f.admin, ListAudit, &ListAuditIn{Action: Some("retention.*"), Limit: 10}).Body).Entries
	if len(entries) != 2 || entries[0].Action != "retention.updated" || entries[1].Action != "retention.created" || entries[0].Target.ID != string(f.home.Workspace.ID) {
		t.Errorf("the audit has %+v", entries)
	}
}

func TestRetention_ArchivesByTheTimeOfClosing(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	early, late, open, again := f.work(PriorityLow).ID, f.work(PriorityLow).ID, f.work(PriorityLow).ID, f.work(PriorityLow).ID
	f.setStatus(early, StatusDone)
	f.setStatus(again, StatusDone)
	f.pass(12 * time.Hour)
	f.setStatus(again, StatusTodo)
	f.setStatus(again, StatusCanceled)
	f.setStatus(early, StatusCanceled) // it stays closed
	f.pass(12 * time.Hour)
	f.setStatus(late, StatusDone)
	f.retain(PutRetentionIn{ClosedIssuesDays: Some(int64(2))})
	f.pass(25 * time.Hour)
	if !f.isArchived(early) || f.isArchived(again) || f.isArchived(late) || f.isArchived(open) {
		t.Errorf("after two days: %t %t %t %t", f.isArchived(early), f.isArchived(again), f.isArchived(late), f.isArchived(open))
	}
	f.pass(12 * time.Hour)
	if !f.isArchived(again) || f.isArchived(late) {
		t.Errorf("half a day later: %t %t", f.isArchived(again), f.isArchived(late))
	}
	f.run(f.admin, UnarchiveIssue, &UnarchiveIssueIn{ID: string(early)})
	f.pass(12 * time.Hour)
	if f.isArchived(early) || !f.isArchived(late) {
		t.Errorf("brought back, and then: %t %t", f.isArchived(early), f.isArchived(late))
	}
	f.pass(2 * day)
	if !f.isArchived(early) || f.isArchived(open) {
		t.Error("the days of an issue that was brought back don't count anew")
	}
	f.verify()
	var told []string
	for _, e := range f.events() {
		if e.Type == "issue.archived" {
			told = append(told, e.Data.ID+string(e.Changes["archivedAt"].From))
		}
	}
	if want := fmt.Sprint([]string{string(early) + "null", string(again) + "null", string(late) + "null", string(early) + "null"}); fmt.Sprint(told) != want {
		t.Errorf("told of %v, want %s", told, want)
	}
}

func TestRetention_DeletesClosedIssuesInBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	const many = maxBudgetRecords + 50
	kept := w.create(CreateIssueIn{Title: "kept"}).ID
	var all []IssueID
	for range many {
		id := w.create(CreateIssueIn{IssueFields: IssueFields{Status: Some(StatusDone)}}).ID
		if len(all)%50 == 1 { // relations between issues that go together
			w.run(&w.ann, PutRelation, &RelationIn{ID: string(id), Type: RelationBlocks, OtherID: string(all[len(all)-1])})
			w.run(&w.ann, PutRelation, &RelationIn{ID: string(kept), Type: RelationBlocks, OtherID: string(id)})
		}
		if len(all) == 3 {
			w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(id), Body: "Gone soon."})
			w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(id)})
		}
		all = append(all, id)
	}
	child := w.create(CreateIssueIn{Title: "child", IssueFields: IssueFields{ParentID: Some(all[0])}}).ID
	sweep := func(how ClosedIssues) (runs int) {
		w.run(&w.ann, PutRetention, &PutRetentionIn{ClosedIssuesDays: Some(int64(0)), ClosedIssues: Some(how)})
		for more := true; more; runs++ {
			w.run(&System, sweepRetentionOp, &TimerIn{Kind: timerSweepRetention})
			v := storage.NewView(w.db, 1, w.workspace)
			timer, err := timers.Get(&v, timerKey(nil, timerSweepRetention, ""))
			if err != nil || timer == nil {
				t.Fatalf("timer %v, %v", timer, err)
			}
			more = timer.Value.Due.Time().Before(w.now.Add(time.Second))
		}
		return runs
	}
	if runs := sweep(ArchiveClosed); runs != 2 {
		t.Errorf("archived in %d batches", runs)
	}
	if w.get(all[0]).ArchivedAt == nil || w.get(all[many-1]).ArchivedAt == nil || w.get(kept).ArchivedAt != nil {
		t.Fatal("not all closed issues are archived")
	}
	reply, err := w.ask(&w.ann, GetLimits, &None{})
	if err != nil {
		t.Fatal(err)
	}
	if used := decode[LimitsAndUsage](t, reply.Body).Used; used.Issues != many+2 {
		t.Errorf("%d issues count", used.Issues)
	}
	from := len(w.events())
	if runs := sweep(DeleteClosed); runs < 2 { // of archived ones too
		t.Errorf("deleted in %d batches", runs)
	}
	left := w.list(&w.ann, ListIssuesIn{}).Issues
	if len(left) != 2 || left[0].ID != child || left[0].ParentID != nil || left[1].ID != kept {
		t.Errorf("left are %v", titles(left))
	}
	if got := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{Archived: Some(true)}}).Issues; len(got) > 0 {
		t.Errorf("archived are %v", titles(got))
	}
	told := map[string]int{}
	for _, e := range w.events()[from:] {
		told[e.Type]++
	}
	if told["issue.deleted"] != many || told["issue.ready"]+told["issue.blocked"] != 0 {
		t.Errorf("told of %v", told)
	}
	w.verify()
}

// holds reports how many keys or values on disk have an id, in binary form or as text,
// outside of the tables given.
func (f *agentFixture) holds(id SessionID, but ...storage.TableID) (n int) {
	f.Helper()
	raw, _ := storage.ParseID(id)
	inverted := sessionKey(raw)
	f.each(func(key, value []byte) {
		text := string(key)
		if !strings.Contains(text, string(raw[:])) && !strings.Contains(text, string(inverted)) {
			return
		}
		for _, table := range but {
			if _, found := tableOf(key); found == table {
				return
			}
		}
		n++
	})
	return n
}

// tableOf returns the table of a key of a workspace.
func tableOf(key []byte) (rest []byte, table storage.TableID) {
	const prefix = 2 + 16
	return key[prefix+1:], storage.TableID(key[prefix])
}

func TestRetention_DeletesEndedSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	robo := string(f.register(CreateAgentIn{Name: "robo"}).ID)
	issue := f.work(PriorityHigh).ID
	text := "Do it."
	first := f.dispatch(issue, DispatchIssueIn{AgentID: Some(robo), Instructions: Some(text)})
	claimed := f.claimOne()
	f.run(claimed.LaneToken, LogActivities, &LogActivitiesIn{
		ID: first.ID, ActivityFields: ActivityFields{Message: Some("Hm.")}, Usage: Some(UsageIn{InputTokens: 7}),
		Plan: Some([]PlanStep{{ID: "1", Title: "Think", Status: "pending"}}),
	})
	f.run(claimed.LaneToken, PutCheckpoint, &PutCheckpointIn{ID: first.ID, Value: []byte(`{"at":1}`)})
	draft := decode[Draft](t, f.run(f.admin, CreateDraft, &CreateDraftIn{Kind: DraftComment, IssueID: Some(issue), SessionID: Some(first.ID), Payload: DraftPayload{Body: Some("Well.")}}).Body)
	if err := f.report(claimed.LaneToken, first.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	after := f.dispatch(issue, DispatchIssueIn{AgentID: Some(robo), SessionOptions: SessionOptions{QueuedAfter: []byte(fmt.Sprintf("%q", first.ID))}})
	f.retain(PutRetentionIn{EndedSessionsDays: Some(int64(1))})
	f.pass(23 * time.Hour)
	if f.session(first.ID).Status != SessionCompleted {
		t.Fatal("the session is gone too early")
	}
	f.pass(2 * time.Hour)
	if _, err := f.try(f.admin, SessionByID, &SessionByIDIn{ID: first.ID}); err == nil {
		t.Fatal("the session is still there")
	}
	f.verify()
	if n := f.holds(first.ID, usageDayTable); n > 0 {
		t.Errorf("%d rows are left", n)
	}
	if d := decode[Draft](t, f.run(f.admin, DraftByID, &RecordIn{ID: string(draft.ID)}).Body); d.SessionID != nil {
		t.Errorf("the draft has %v", *d.SessionID)
	}
	for by, want := range map[string]int64{"agent": 7, "issue": 7, "session": 0} {
		var sum int64
		for _, g := range decode[UsageGroups](t, f.run(f.admin, ListUsage, &ListUsageIn{GroupBy: by, From: Some("2020-01-01T00:00:00Z")}).Body).Groups {
			sum += g.InputTokens
		}
		if sum != want {
			t.Errorf("by %s, %d tokens were used", by, sum)
		}
	}
	if next := f.claimOne(); next.Session.ID != after.ID {
		t.Errorf("claimed %s", next.Session.ID)
	}
	counts := decode[QueueSummary](t, f.run(f.admin, ReadQueue, &None{}).Body).Counts
	if counts[SessionCompleted] != 0 || counts[SessionRunning] != 1 {
		t.Errorf("counted %v", counts)
	}
	f.retain(PutRetentionIn{EndedSessionsDays: Some(int64(0))})
	if _, err := f.try(f.admin, CancelSession, &CancelSessionIn{ID: after.ID}); err != nil {
		t.Fatal(err)
	}
	f.pass(61 * time.Minute)
	if _, err := f.try(f.admin, SessionByID, &SessionByIDIn{ID: after.ID}); err == nil {
		t.Error("a session of today is still there, though none are kept")
	}
	f.verify()
}

func TestRetention_DeletesDeliveries(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	w.create(CreateIssueIn{})
	w.create(CreateIssueIn{})
	pending := w.outbox(hook.ID)
	w.record(hook.ID, false, "", pending[0])
	early := w.now
	w.now = w.now.Add(2 * time.Hour)
	w.record(hook.ID, false, "", pending[1])
	w.create(CreateIssueIn{}) // stays pending
	w.run(&w.ann, PutRetention, &PutRetentionIn{DeliveriesDays: Some(int64(1))})
	sweep := func() {
		w.run(&System, sweepRetentionOp, &TimerIn{Kind: timerSweepRetention})
		w.verify()
	}
	w.now = early.Add(day - time.Minute)
	sweep()
	if got := w.pages(hook.ID, DeliverySucceeded, 10); len(got) != 2 {
		t.Errorf("%d deliveries are left before a day is over", len(got))
	}
	w.now = early.Add(day)
	sweep()
	if got := w.pages(hook.ID, DeliverySucceeded, 10); len(got) != 1 || got[0].ID != pending[1].ID.String() {
		t.Errorf("%d deliveries are left", len(got))
	}
	w.run(&w.ann, PutRetention, &PutRetentionIn{DeliveriesDays: Some(int64(0))})
	sweep()
	if got := w.pages(hook.ID, DeliverySucceeded, 10); len(got) != 0 {
		t.Errorf("%d deliveries are left", len(got))
	}
	if got := w.pages(hook.ID, DeliveryPending, 10); len(got) != 1 {
		t.Errorf("%d deliveries are pending", len(got))
	}
}
