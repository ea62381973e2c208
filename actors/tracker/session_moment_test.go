package tracker

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// counted counts the snapshots that are taken of a database.
type counted struct {
	*pebble.DB
	snapshots int
}

func (c *counted) NewSnapshot() *pebble.Snapshot {
	c.snapshots++
	return c.DB.NewSnapshot()
}

// A read that one record answers takes no snapshot, and one that needs more takes one.
func TestReadsOfOneRecord(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	s := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)}).Body)
	elsewhere := w.create(CreateIssueIn{})
	running := decode[RegisteredSession](t, w.run(&w.ann, RegisterSession, &RegisterSessionIn{IssueID: string(elsewhere.ID), Provider: "p"}).Body)
	w.run(&w.ann, ReportSession, &ReportSessionIn{ID: running.Session.ID, Status: Some(SessionRunning)})
	logged := decode[LoggedActivities](t, w.run(&w.ann, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("Looked.")}}).Body).Activities[0]
	member := w.ann
	member.Level = Write
	for _, row := range []struct {
		name   string
		caller *Caller
		op     *Op
		in     any
		want   int
	}{
		{"issue", &member, IssueByID, &IssueByIDIn{ID: string(issue.ID)}, 0},
		{"session", &w.ann, SessionByID, &SessionByIDIn{ID: running.Session.ID}, 0},
		{"session, and what it waits for", &w.ann, SessionByID, &SessionByIDIn{ID: s.ID}, 1},
		{"session, and its issue", &member, SessionByID, &SessionByIDIn{ID: s.ID}, 1},
		{"unchanged", &w.ann, PollSession, &PollSessionIn{ID: s.ID, Since: Some(logged.ID)}, 0},
		{"unchanged, and its issue", &member, PollSession, &PollSessionIn{ID: s.ID, Since: Some(logged.ID)}, 1},
		{"waiting", &w.ann, PollSession, &PollSessionIn{ID: s.ID, Since: Some(logged.ID), Wait: 5}, 0},
		{"activities", &w.ann, PollSession, &PollSessionIn{ID: s.ID}, 1},
	} {
		db := &counted{DB: w.db}
		v := NewView(storage.NewView(db, 1, w.workspace), row.caller, w.now, nil)
		if _, err := row.op.RunQuery(v, row.in); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if db.snapshots != row.want {
			t.Errorf("%s: %d snapshots, want %d", row.name, db.snapshots, row.want)
		}
	}
}
