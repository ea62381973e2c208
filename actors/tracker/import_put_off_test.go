package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// said lists the messages of a session.
func (f *agentFixture) said(id SessionID) (messages []string) {
	f.Helper()
	for _, a := range decode[PolledSession](f, f.run(f.admin, PollSession, &PollSessionIn{ID: id}).Body).Activities {
		messages = append(messages, a.Message)
	}
	return messages
}

// Times of sessions that come while an import runs have their effect when it is done: behind the
// older activities of the session, and for the sessions that wait for it.
func TestImport_PutsOffTimesOfSessions(t *testing.T) {
	t.Parallel()
	const ahead = 30 * time.Minute
	for name, row := range map[string]struct {
		options  SessionOptions
		lease    int64
		wait     bool // for a time
		want     SessionStatus
		says     string
		follower bool // it waits on
	}{
		"a lease":        {lease: 60, want: SessionCreated, says: "The lease ran out", follower: true},
		"the last lease": {options: retrying(RetryIn{MaxAttempts: Some(int64(1))}).SessionOptions, lease: 60, want: SessionFailed, says: "The lease ran out"},
		"a maxDuration":  {options: SessionOptions{MaxDuration: Some(int64(1))}, lease: 3600, want: SessionCanceled, says: "Canceled: its budget"},
		"a time":         {lease: 3600, wait: true, want: SessionCreated, says: "What the session waited for has happened", follower: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newAgentFixture(t)
			a := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: row.options})
			c := f.claim(ClaimSessionsIn{LeaseSeconds: row.lease})[0]
			log := func(message string) {
				f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: a.ID, ActivityFields: ActivityFields{Message: Some(message)}})
			}
			log("First.")
			other := f.work(PriorityLow)
			log("Second.")
			if row.wait {
				at := WaitCondition{After: string(At(f.now.Add(ahead / 2)))}
				f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: a.ID, Status: Some(SessionWaiting), WaitFor: Some(anyOf(at))})
			}
			b := f.dispatch(other.ID, DispatchIssueIn{AgentID: Some("b"), SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(a.ID))}})
			to := f.copiedIn(f.exportedLines(), 1, ahead, func(to *agentFixture) { to.pass(time.Millisecond) })
			to.pass(time.Minute)
			to.verify()
			if got := to.session(a.ID).Status; got != row.want {
				t.Errorf("the session is %s, want %s", got, row.want)
			}
			if got := to.session(b.ID).Status; (got == SessionWaiting) != row.follower || !row.follower && !got.Ended() {
				t.Errorf("the session behind it is %s", got)
			}
			before, after := f.said(a.ID), to.said(a.ID)
			if len(after) != len(before)+1 || fmt.Sprint(after[:len(before)]) != fmt.Sprint(before) || !strings.Contains(after[len(before)], row.says) {
				t.Errorf("the log is %q, was %q", after, before)
			}
		})
	}
}

// A workspace whose import was given up does not wait for its end for ever.
func TestImport_GivenUpEndsLeases(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	c := f.claimOne()
	lines := f.exportedLines()
	to := f.copiedIn(lines[:len(lines)-1], 100, time.Hour, func(*agentFixture) {})
	to.now = to.now.Add(importIdle - time.Hour)
	to.pass(time.Second)
	if got := to.session(c.Session.ID).Status; got != SessionRunning {
		t.Errorf("the session is %s while the import may go on", got)
	}
	to.verify()
	to.now = to.now.Add(2 * time.Hour)
	to.pass(time.Minute)
	if got := to.session(c.Session.ID).Status; got != SessionCreated {
		t.Errorf("the session is %s after the import was given up", got)
	}
	to.verify()
}

// A retention that is set while an import runs is swept by when the import is done: later lines have what
// belongs to the records that are past its time.
func TestImport_PutsOffTheSweep(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	closed := f.work(PriorityLow).ID
	f.run(f.admin, CreateComment, &CreateCommentIn{IssueID: string(closed), Body: "It is done."})
	f.setStatus(closed, StatusDone)
	there := func(w *agentFixture) bool {
		_, err := w.ask(w.admin, w.home.Workspace.ID, IssueByID, &IssueByIDIn{ID: string(closed)})
		return err == nil
	}
	came := 0 // lines since the issue has come
	to := f.copiedIn(f.exportedLines(), 1, time.Hour, func(to *agentFixture) {
		to.testService.agents.SweepInterval = time.Minute
		to.retain(PutRetentionIn{ClosedIssuesDays: Some(int64(0)), ClosedIssues: Some(DeleteClosed)})
		before := there(to)
		if before {
			came++
		}
		if decode[ImportAnswer](t, to.run(to.admin, ShowImport, &None{}).Body).Import.State == ImportRunning {
			to.pass(2 * time.Minute)
			if there(to) != before {
				t.Fatal("the sweep has deleted an issue of a running import")
			}
		}
	})
	if came < 2 {
		t.Fatalf("%d lines came since the issue was there", came)
	}
	to.pass(2 * time.Minute)
	if there(to) {
		t.Error("the issue is not swept when the import is done")
	}
	to.verify()
}

// A timer that waits for an import of many hours looks at it rarely. When the import was given up, the session
// ends as soon as it would have without a pause.
func TestImport_PutsOffLongerTheLongerItTakes(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: SessionOptions{MaxDuration: Some(int64(1))}})
	c := f.claimOne()
	lines := f.exportedLines()
	to := f.copiedIn(lines[:len(lines)-1], 100, 0, func(*agentFixture) {})
	given := to.now.Add(importIdle)
	looks := 0
	for to.session(c.Session.ID).Status == SessionRunning {
		at, due := to.nextTimer()
		if due == nil || at.After(given) {
			t.Fatalf("the session is running at %s, after %d looks", to.now, looks)
		}
		if due.Kind == timerSessionBudget {
			looks++
		}
		to.pass(max(0, at.Sub(to.now)))
	}
	if to.now.Before(given) || looks > 100 {
		t.Errorf("the session ended %s before the import was given up, after %d looks", given.Sub(to.now), looks)
	}
	to.verify()
}
