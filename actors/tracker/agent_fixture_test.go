package tracker

import (
	"errors"
	"fmt"
	"testing"

	json "github.com/goccy/go-json"
)

// agentFixture is a testService with one workspace in which agents work.
type agentFixture struct {
	*testService
	home  Onboarded
	admin string
}

func newAgentFixture(t tester) *agentFixture {
	t.Helper()
	w := newTestService(t)
	home := w.onboard("fleet")
	return &agentFixture{testService: w, home: home, admin: home.Token.Secret}
}

// try runs an operation in the fleet's workspace.
func (f *agentFixture) try(credential string, op *Op, in any) (Reply, error) {
	f.Helper()
	return f.ask(credential, f.home.Workspace.ID, op, in)
}

// run is like try, and fails the test on an error.
func (f *agentFixture) run(credential string, op *Op, in any) Reply {
	f.Helper()
	return f.must(credential, f.home.Workspace.ID, op, in)
}

func (f *agentFixture) work(priority IssuePriority) Issue {
	f.Helper()
	return decode[Issue](f, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "Work", IssueFields: IssueFields{Priority: Some(priority)}}).Body)
}

func (f *agentFixture) register(in CreateAgentIn) Agent {
	f.Helper()
	return decode[Agent](f, f.run(f.admin, CreateAgent, &in).Body)
}

func (f *agentFixture) dispatch(issue IssueID, in DispatchIssueIn) DispatchedSession {
	f.Helper()
	in.ID = string(issue)
	reply := f.run(f.admin, DispatchIssue, &in)
	s := decode[DispatchedSession](f, reply.Body)
	f.wantTag(f.admin, s.ID, reply)
	return s
}

// wantTag compares the ETag of an answer to a change with that of the session now, for the same caller.
func (f *agentFixture) wantTag(credential string, id SessionID, changed Reply) {
	f.Helper()
	if now := f.run(credential, SessionByID, &SessionByIDIn{ID: id}).ETag; changed.ETag != now {
		f.Errorf("the change answers the ETag %s, and GET %s", changed.ETag, now)
	}
}

func (f *agentFixture) claim(in ClaimSessionsIn) []ClaimedSession {
	f.Helper()
	return decode[ClaimedSessions](f, f.run(f.admin, ClaimSessions, &in).Body).Sessions
}

// claimOne claims a session, which must exist.
func (f *agentFixture) claimOne() ClaimedSession {
	f.Helper()
	got := f.claim(ClaimSessionsIn{})
	if len(got) != 1 {
		f.Fatalf("claimed %d sessions", len(got))
	}
	return got[0]
}

func (f *agentFixture) session(id SessionID) ShownSession {
	f.Helper()
	return decode[ShownSession](f, f.run(f.admin, SessionByID, &SessionByIDIn{ID: id}).Body)
}

func (f *agentFixture) issueNow(id IssueID) Issue {
	f.Helper()
	return decode[Issue](f, f.run(f.admin, IssueByID, &IssueByIDIn{ID: string(id)}).Body)
}

// report ends or moves a session.
func (f *agentFixture) report(credential string, id SessionID, status SessionStatus) error {
	f.Helper()
	_, err := f.try(credential, ReportSession, &ReportSessionIn{ID: id, Status: Some(status)})
	return err
}

// emittedEvent is an event of a session or an issue.
type emittedEvent struct {
	Type string
	Data struct {
		ID     string
		Status string
	}
	Changes map[string]struct{ From, To json.RawMessage }
}

// events returns the event log.
func (f *agentFixture) events() (all []emittedEvent) {
	f.Helper()
	v := f.view(f.home.Workspace.ID.raw())
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		if err == nil {
			all = append(all, decode[emittedEvent](f, rec.JSON()))
		}
		return true, err
	})
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// happened lists the types and statuses of the events from the nth on.
func (f *agentFixture) happened(from int) (list []string) {
	f.Helper()
	for _, e := range f.events()[from:] {
		list = append(list, e.Type+" "+e.Data.Status)
	}
	return list
}

// wantConflict checks that an error has the state of a session.
func wantConflict(t tester, err error, status SessionStatus, held bool) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeConflict {
		t.Fatalf("error is %v, want a conflict", err)
	}
	d, ok := e.Details.(SessionConflict)
	if !ok || d.Status != status || (d.Holder != nil) != held || (d.LeaseExpiresAt != nil) != held {
		t.Fatalf("details are %+v, want status %s, held %t", e.Details, status, held)
	}
}

func claimedIDs(claimed []ClaimedSession) string {
	var ids []SessionID
	for _, c := range claimed {
		ids = append(ids, c.Session.ID)
	}
	return fmt.Sprint(ids)
}

func TestSessionRecord_IsCutBehindWhatClientsGet(t *testing.T) {
	t.Parallel()
	text := `",\"inner\":{` + `,"inner":{"a":1}`
	s := &sessionRecord{AgentSession: AgentSession{ID: "x", Result: &text, StructuredResult: json.RawMessage(`{"a":1,"inner":{"lastStateHash":"no"}}`)}}
	s.Inner.Last = 7
	if err := s.stamp(); err != nil {
		t.Fatal(err)
	}
	body, err := json.MarshalWithOption(s, json.DisableHTMLEscape())
	if err != nil {
		t.Fatal(err)
	}
	got := decode[AgentSession](t, publicCopy(body))
	if *got.Result != text || *got.LastStateHash != *s.LastStateHash || string(lastText(publicPart(body), "lastStateHash")) != *s.LastStateHash {
		t.Errorf("public part %s", publicPart(body))
	}
	if inner := decode[sessionInner](t, innerPart(body)); inner.Last != 7 {
		t.Errorf("inner part %s", innerPart(body))
	}
}
