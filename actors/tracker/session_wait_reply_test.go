package tracker

import (
	"strings"
	"testing"
	"time"
)

// A person may reply before the agent has reported that it waits for the reply.
func TestWait_ReplyBeforeTheReport(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		steps string // after the first claim; "report" has the session wait for a reply
		met   bool   // the last report of the steps
	}{
		{"report", false},
		{"ask report", false},
		{"ask reply report", true},
		{"ask reply log report", true},
		{"ask ask reply report", true},
		{"ask pause reply report", true},
		// The reply is to an earlier question.
		{"reply ask report", false},
		{"ask reply ask report", false},
		{"ask reply ask reply report", true},
		// The next attempt goes on behind the question.
		{"ask reply release claim report", true},
		{"ask release reply claim report", true},
		{"ask reply lapse claim report", true},
		// A wait has taken the reply.
		{"ask report reply claim report", false},
		{"ask reply report claim report", false},
		{"ask reply report claim ask report reply claim report", false},
	} {
		f := newAgentFixture(t)
		s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
		// No agent has asked yet.
		f.run(f.admin, ReplyToSession, &ReplyToSessionIn{ID: s.ID, Message: "Go on."})
		c, got := f.claimOne(), ShownSession{}
		for step := range strings.FieldsSeq(row.steps) {
			switch step {
			case "claim":
				c = f.claimOne()
			case "ask":
				f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Type: ActivityElicitation, Message: Some("Which?")}})
			case "log":
				f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("Looked.")}})
			case "reply":
				f.run(f.admin, ReplyToSession, &ReplyToSessionIn{ID: s.ID, Message: "This."})
			case "pause":
				f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting)})
			case "release":
				f.run(c.LaneToken, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "Later."}})
			case "lapse":
				f.pass(2 * time.Minute)
			case "report":
				in := anyOf(WaitCondition{PR: "merged"}, WaitCondition{Reply: true})
				got = decode[ShownSession](t, f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(in)}).Body)
			}
			f.verify()
		}
		want := SessionWaiting
		if row.met {
			want = SessionCreated
		}
		if got.Status != want {
			t.Errorf("%s: the session is %s", row.steps, got.Status)
			continue
		}
		if !row.met {
			continue
		}
		if c = f.claimOne(); len(c.WokenBy) != 1 || !c.WokenBy[0].Condition.Reply {
			t.Errorf("%s: woken by %+v", row.steps, c.WokenBy)
		}
	}
}

// A reply that came before meets one of all conditions.
func TestWait_ReplyBeforeTheReportAndOthers(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	c := f.claimOne()
	f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Type: ActivityElicitation, Message: Some("Which?")}})
	f.run(f.admin, ReplyToSession, &ReplyToSessionIn{ID: s.ID, Message: "This."})
	both := ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(allOf(WaitCondition{Reply: true}, WaitCondition{PR: "merged"}))}
	if got := decode[ShownSession](t, f.run(c.LaneToken, ReportSession, &both).Body); got.Status != SessionWaiting {
		t.Fatalf("after one of two it is %s", got.Status)
	}
	f.verify()
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{PRState: Some("merged")}})
	if c = f.claimOne(); len(c.WokenBy) != 1 || c.WokenBy[0].Condition.PR != "merged" {
		t.Fatalf("woken by %+v", c.WokenBy)
	}
	// The reply was taken by that wait.
	if got := decode[ShownSession](t, f.run(c.LaneToken, ReportSession, &both).Body); got.Status != SessionWaiting {
		t.Errorf("it is %s", got.Status)
	}
	f.verify()
}
