package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

func (f *agentFixture) batch(items ...DispatchItem) []DispatchedItem {
	f.Helper()
	return decode[DispatchedBatch](f, f.run(f.admin, DispatchBatch, &DispatchBatchIn{Items: items}).Body).Results
}

// queue returns an item for an issue, queued after something or "".
func queue(issue IssueID, after string) DispatchItem {
	item := DispatchItem{IssueID: string(issue)}
	if after != "" {
		item.QueuedAfter = json.RawMessage(`"` + after + `"`)
	}
	return item
}

func (f *agentFixture) status(id *SessionID) SessionStatus {
	f.Helper()
	if id == nil {
		f.Fatal("there is no session")
	}
	return f.session(*id).Status
}

func TestDispatchBatch_EachForItself(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a, b, c := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	got := f.batch(
		DispatchItem{IssueID: string(a.ID), AgentID: Some("x"), Branch: Some("topic"), Instructions: Some("Go."), SessionOptions: SessionOptions{ResultSchema: json.RawMessage(`"lane"`), MaxDuration: Some(int64(5))}},
		queue(IssueID(f.home.Workspace.ID), ""),
		queue("no id", ""),
		queue(b.ID, "no id"),
		queue(b.ID, string(a.ID)),
		queue(c.ID, string(b.ID)),
		DispatchItem{IssueID: string(c.ID), SessionOptions: SessionOptions{ResultSchema: json.RawMessage(`{"type":"strin"}`)}},
		queue(a.ID, string(c.ID)),
	)
	var line []string
	for i, r := range got {
		if (r.Error == nil) != (r.SessionID != nil) || (r.Status == nil) != (r.SessionID == nil) {
			t.Errorf("item %d: %+v", i, r)
		}
		switch {
		case r.Error != nil:
			line = append(line, "error")
		default:
			line = append(line, string(*r.Status))
		}
	}
	// The last item names an issue whose earlier item was refused.
	if text := strings.Join(line, " "); text != "created error error error waiting waiting error error" {
		t.Errorf("results %s", text)
	}
	if text := *got[6].Error; !strings.HasPrefix(text, "resultSchema: ") {
		t.Errorf("error %q", text)
	}
	s := f.session(*got[0].SessionID)
	if s.AgentID != "x" || *s.Branch != "topic" || *s.MaxDurationMinutes != 5 || string(s.ResultSchema) != laneSchema {
		t.Errorf("session %+v", s)
	}
	if claimed := f.claimOne(); *claimed.Instructions != "Go." || claimed.Session.ID != s.ID {
		t.Errorf("claimed %+v", claimed)
	}
	f.verify()
}

func TestDispatchBatch_Line(t *testing.T) {
	t.Parallel()
	for _, end := range []SessionStatus{SessionCompleted, SessionFailed, SessionCanceled} {
		f := newAgentFixture(t)
		a, b, c := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
		got := f.batch(queue(a.ID, ""), queue(b.ID, string(a.ID)), queue(c.ID, string(b.ID)))
		if claimed := f.claim(ClaimSessionsIn{Limit: 50}); len(claimed) != 1 {
			t.Fatalf("claimed %s", claimedIDs(claimed))
		}
		before := len(f.events())
		if err := f.report(f.admin, *got[0].SessionID, end); err != nil {
			t.Fatal(err)
		}
		told := strings.Join(f.happened(before), ", ")
		if end == SessionCompleted {
			if told != "session.ended completed, session.updated created" {
				t.Errorf("events: %s", told)
			}
			if now := f.status(got[2].SessionID); now != SessionWaiting {
				t.Errorf("the last is %s", now)
			}
			if claimed := f.claimOne(); claimed.Session.ID != *got[1].SessionID {
				t.Errorf("claimed %s", claimed.Session.ID)
			}
			if err := f.report(f.admin, *got[1].SessionID, SessionCompleted); err != nil {
				t.Fatal(err)
			}
			if now := f.status(got[2].SessionID); now != SessionCreated {
				t.Errorf("the last is %s", now)
			}
		} else if told != "session.ended "+string(end)+", session.ended canceled, session.ended canceled" {
			t.Errorf("%s: events: %s", end, told)
		}
		f.verify()
	}
}

// An item behind an ended session is decided at once.
func TestDispatchBatch_BehindWhatHasEnded(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue, next := f.work(PriorityLow), f.work(PriorityLow)
	first := f.dispatch(issue.ID, DispatchIssueIn{})
	if err := f.report(f.admin, first.ID, SessionFailed); err != nil {
		t.Fatal(err)
	}
	if got := f.batch(queue(next.ID, string(issue.ID)))[0]; *got.Status != SessionCanceled || f.status(got.SessionID) != SessionCanceled {
		t.Errorf("behind a failure: %s", *got.Status)
	}
	second := f.dispatch(issue.ID, DispatchIssueIn{})
	waits := f.batch(queue(next.ID, string(issue.ID)))[0]
	if *waits.Status != SessionWaiting {
		t.Errorf("behind the issue's newest session: %s", *waits.Status)
	}
	if err := f.report(f.admin, second.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	for _, after := range []string{string(issue.ID), string(second.ID)} {
		if got := f.batch(queue(next.ID, after))[0]; *got.Status != SessionCreated {
			t.Errorf("behind what is completed: %s", *got.Status)
		}
	}
	if got := f.batch(queue(next.ID, string(first.ID)))[0]; *got.Status != SessionCanceled {
		t.Errorf("behind the session that failed: %s", *got.Status)
	}
	// The newest session of its own issue is the one before it, never itself.
	own := f.batch(queue(issue.ID, ""), queue(issue.ID, string(issue.ID)))
	if *own[1].Status != SessionWaiting {
		t.Errorf("behind the issue itself: %s", *own[1].Status)
	}
	fresh := f.work(PriorityLow)
	if got := f.batch(queue(fresh.ID, string(fresh.ID)))[0]; got.Error == nil {
		t.Error("a session waits for itself")
	}
	f.verify()
}

func TestDispatchBatch_APredecessorIsDeletedOrLeft(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a, b, c := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	got := f.batch(queue(a.ID, ""), queue(b.ID, string(a.ID)), queue(c.ID, string(a.ID)))
	// A session that starts while it waits no longer waits for its predecessor.
	if err := f.report(f.admin, *got[2].SessionID, SessionRunning); err != nil {
		t.Fatal(err)
	}
	if _, err := f.try(f.admin, ReplyToSession, &ReplyToSessionIn{ID: *got[1].SessionID, Message: "go"}); err == nil {
		t.Error("a reply moved a session that stands in line")
	}
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(a.ID)})
	if now := f.status(got[1].SessionID); now != SessionCanceled {
		t.Errorf("behind a deleted issue: %s", now)
	}
	if now := f.status(got[2].SessionID); now != SessionRunning {
		t.Errorf("what had begun is %s", now)
	}
	f.verify()
}

// A timer moves the followers beyond the limit of one command, and their own followers.
func TestDispatchBatch_LongLines(t *testing.T) {
	t.Parallel()
	for _, end := range []SessionStatus{SessionCompleted, SessionFailed} {
		f := newAgentFixture(t)
		first := f.batch(queue(f.work(PriorityLow).ID, ""))[0]
		var all []SessionID
		after := *first.SessionID
		for range 5 {
			var items []DispatchItem
			for i := range 50 {
				items = append(items, queue(f.work(PriorityLow).ID, string(after)))
				if i > 0 && end == SessionFailed { // each behind the other
					items[i].QueuedAfter = queuedBehind(items[i-1].IssueID)
				}
			}
			for _, r := range f.batch(items...) {
				all = append(all, *r.SessionID)
			}
			if end == SessionFailed {
				after = all[len(all)-1]
			}
		}
		if err := f.report(f.admin, *first.SessionID, end); err != nil {
			t.Fatal(err)
		}
		f.verify()
		waiting := func() (n int) {
			for _, id := range all {
				if f.session(id).Status == SessionWaiting {
					n++
				}
			}
			return n
		}
		if n := waiting(); n != len(all)-maxFollowers {
			t.Errorf("%s: of %d behind it one command left %d", end, len(all), n)
		}
		f.pass(time.Second)
		want := SessionCreated
		if end == SessionFailed {
			want = SessionCanceled
		}
		for _, id := range all {
			if now := f.session(id).Status; now != want {
				t.Fatalf("%s: behind it is one that is %s", end, now)
			}
		}
		f.verify()
	}
}

func TestDispatchBatch_WhoMaySee(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	private := decode[Team](t, f.run(f.admin, CreateTeam, &CreateTeamIn{Name: "P", Key: "PRI", IsPublic: Some(false)}).Body)
	hidden := decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "h", IssueFields: IssueFields{TeamID: Some(private.ID)}}).Body)
	theirs := f.dispatch(hidden.ID, DispatchIssueIn{})
	open := f.work(PriorityLow)
	_, member := f.member(f.home, RoleMember, "write")
	reply := f.run(member, DispatchBatch, &DispatchBatchIn{Items: []DispatchItem{
		queue(open.ID, string(hidden.ID)), queue(open.ID, string(theirs.ID)), queue(open.ID, "nothing"), queue(hidden.ID, ""), queue(open.ID, ""),
	}})
	got := decode[DispatchedBatch](t, reply.Body).Results
	if got[3].Error == nil || *got[3].Error != NotFound("issue").Message {
		t.Errorf("a hidden issue: %+v", got[3])
	}
	for _, r := range got[:3] {
		if r.Error == nil || *r.Error != *got[2].Error {
			t.Errorf("behind what is hidden, and what is not there: %+v", r)
		}
	}
	if got[4].SessionID == nil {
		t.Errorf("an open issue: %s", *got[4].Error)
	}
	_, reader := f.member(f.home, RoleMember, "sessions:read")
	_, err := f.try(reader, DispatchBatch, &DispatchBatchIn{Items: []DispatchItem{queue(open.ID, "")}})
	wantCode(t, err, CodeForbidden)
}

func TestDispatchBatch_RepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := &DispatchBatchIn{Items: []DispatchItem{queue(f.work(PriorityLow).ID, ""), queue("none", "")}}
	first := f.must(f.admin, f.home.Workspace.ID, DispatchBatch, in, "key")
	again := f.must(f.admin, f.home.Workspace.ID, DispatchBatch, in, "key")
	if !again.Replayed || string(first.Body) != string(again.Body) {
		t.Error("the repeat is not the first answer")
	}
	if n := len(decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{}).Body).Sessions); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestDispatchBatch_Validate(t *testing.T) {
	t.Parallel()
	large := func(i int) DispatchItem {
		return DispatchItem{IssueID: "x", SessionOptions: SessionOptions{ResultSchema: json.RawMessage(fmt.Sprintf(`{"title":"%d%s"}`, i, strings.Repeat("x", 30<<10)))}}
	}
	for _, c := range []struct {
		items []DispatchItem
		want  string
	}{
		{[]DispatchItem{{IssueID: "x", SessionOptions: SessionOptions{ResultSchema: json.RawMessage(`{"type":"strin"}`)}}}, ""},
		{[]DispatchItem{{IssueID: "x"}, {IssueID: "x", SessionOptions: SessionOptions{ResultSchema: json.RawMessage(`"line"`)}}}, "items[1].resultSchema"},
		{[]DispatchItem{large(1), large(1), large(1), large(2)}, ""},
		{[]DispatchItem{large(1), large(2), large(3)}, "items[2].resultSchema"},
	} {
		var faults Faults
		(&DispatchBatchIn{Items: c.items}).Validate(&faults)
		if c.want == "" != faults.Empty() || c.want != "" && !faults.Has(c.want) {
			t.Errorf("%d items: %+v, want %q", len(c.items), faults, c.want)
		}
	}
}
