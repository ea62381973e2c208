package tracker

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/storage"
)

// logs claims a session and logs so many messages.
func (f *agentFixture) logs(id SessionID, n int) {
	f.Helper()
	c := f.claimOne()
	if c.Session.ID != id {
		f.Fatalf("claimed %s instead of %s", c.Session.ID, id)
	}
	for i := range n {
		f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: id, ActivityFields: ActivityFields{Message: Some(fmt.Sprint("Step ", i))}})
	}
}

// The record of a session may be long. The activities of a request change it once.
func TestImport_WritesASessionOnceForItsActivities(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	var ids []SessionID
	for range 2 {
		id := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")}).ID
		f.logs(id, 50)
		ids = append(ids, id)
	}
	to := f.copiedIn(f.exportedLines(), 1000, 0, func(*agentFixture) {})
	view := to.view(to.home.Workspace.ID.raw())
	for _, id := range ids {
		raw, _ := storage.ParseID(id)
		row, err := sessions.Get(&view, sessionKey(raw))
		if err != nil {
			t.Fatal(err)
		}
		if row.Version > 3 { // with its own line and its state
			t.Errorf("the session was written %d times", row.Version)
		}
		if got, want := to.said(id), f.said(id); len(want) != 50 || !slices.Equal(got, want) {
			t.Errorf("the copy's log is %q, was %q", got, want)
		}
	}
}

// Of more activities than a session keeps an import keeps the newest, as the service does.
func TestImport_KeepsTheNewestActivities(t *testing.T) {
	t.Parallel()
	const (
		team    = "01935000-0001-7000-8000-0000000000bb"
		issue   = "01935001-0001-7000-8000-000000000000"
		session = "01935002-0000-7000-8000-000000000000"
		at      = `"createdAt":"2026-01-01T00:00:00.000Z"`
	)
	w := newLineImport(t)
	for _, line := range [][2]string{
		{"team", fmt.Sprintf(importedTeam, team, "ENG")},
		{"issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")},
		{"session", `{"id":"` + session + `","issueId":"` + issue + `","agentId":"a","provider":"p","actorId":"x","actorType":"user","status":"created","updatedAt":"2026-01-01T00:00:00.000Z",` + at + `}`},
	} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
	}
	activity := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"type":"activity","data":{"id":"01935002-0001-7%03x-8000-%012x","sessionId":%q,"type":"action","message":"M",%s}}`, w.n, n>>12, n, session, at)
	}
	for n := range maxActivities + 5 {
		if err := w.send(activity(n)); err != nil {
			t.Fatal(n, err)
		}
		w.counts["activity"]++
	}
	wantLineFault(t, w.send(activity(7)), "in the order in which they were made")
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.verify()
	log := decode[PolledSession](t, w.must(w.home.Token.Secret, w.home.Workspace.ID, PollSession, &PollSessionIn{ID: session}).Body)
	if n := len(log.Activities); n == 0 || log.Activities[n-1].ID != fmt.Sprintf("01935002-0001-7002-8000-%012x", maxActivities+4) {
		t.Errorf("the log ends with %+v", log.Activities)
	}
	view := w.view(w.home.Workspace.ID.raw())
	rows := 0
	if err := view.Rows(activityTable, nil, nil, func(_, _ []byte) (bool, error) { rows++; return true, nil }); err != nil || rows != maxActivities {
		t.Errorf("%d activities are kept, %v", rows, err)
	}
}
