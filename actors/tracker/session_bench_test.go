package tracker

import (
	"testing"
	"time"

	"switchyard/storage"
)

// An iteration is the whole life of a session: dispatch, claim, three logs and a report.
// Divide by six to compare it with CreateIssue.
func BenchmarkSessionCycle(b *testing.B) {
	w := newIssueBench(b)
	w.fill(1000)
	var issue Issue
	req := w.request(&w.ann)
	now := w.now
	run := func(op *Op, in any) Reply {
		now = now.Add(time.Millisecond)
		reply, err := w.buffer.Run(op, req, in, now)
		if err != nil {
			b.Fatal(err)
		}
		return reply
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%8 == 0 {
			b.StopTimer()
			issue = decode[CreatedIssue](b, run(CreateIssue, &CreateIssueIn{Title: "Something does not work"}).Body).Issue
			b.StartTimer()
		}
		run(DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)})
		id := SessionID(storedText(run(ClaimSessions, &ClaimSessionsIn{}).Body, "id"))
		for range 3 {
			run(LogActivities, &LogActivitiesIn{ID: id, ActivityFields: ActivityFields{Message: Some("Looked at the code and found where it goes wrong.")}})
		}
		run(ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionCompleted), Result: Some("Done.")})
		if i%8 == 7 {
			w.commit()
		}
	}
	w.commit()
}

func BenchmarkPollSession(b *testing.B) {
	w := newIssueBench(b)
	issue := w.create(CreateIssueIn{})
	s := decode[DispatchedSession](b, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)}).Body)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, buf)
		reply, err := PollSession.RunQuery(v, &PollSessionIn{ID: s.ID})
		if err != nil {
			b.Fatal(err)
		}
		buf = reply.Body
	}
}
