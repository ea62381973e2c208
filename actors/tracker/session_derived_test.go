package tracker

import "testing"

// The event of a change tells how derivedStatus changed, which its data shows.
func TestSession_EventsTellOfDerivedStatus(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	issue := decode[Issue](t, w.must(user, org, CreateIssue, &CreateIssueIn{Title: "Work"}).Body)
	w.must(user, org, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some("bot")})
	id := decode[ClaimedSessions](t, w.must(user, org, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions[0].Session.ID
	const none, needs = "null", `"needs_input"`
	was := none
	for i, step := range []struct {
		op   *Op
		in   any
		want string
	}{
		{LogActivities, &LogActivitiesIn{ID: id, ActivityFields: ActivityFields{Message: Some("On it.")}}, none},
		{LogActivities, &LogActivitiesIn{ID: id, ActivityFields: ActivityFields{Type: ActivityElicitation, Message: Some("Which?")}}, needs},
		{Heartbeat, &HeartbeatIn{ID: id, Usage: Some(UsageIn{InputTokens: 1})}, needs},
		{ReplyToSession, &ReplyToSessionIn{ID: id, Message: "This one."}, none},
		{ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionWaiting)}, needs},
		{ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionRunning)}, none},
		{LogActivities, &LogActivitiesIn{ID: id, ActivityFields: ActivityFields{Type: ActivityElicitation, Message: Some("And now?")}}, needs},
		{ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionCompleted)}, none},
	} {
		w.must(user, org, step.op, step.in)
		list := decode[EventPage](t, w.must(user, org, ListEvents, &ListEventsIn{Types: "session.*"}).Body).Events
		last := list[len(list)-1]
		change, told := last.Changes["derivedStatus"]
		if told != (was != step.want) || told && (string(change.From) != was || string(change.To) != step.want) {
			t.Errorf("step %d, %s: told %t of %s to %s, want %s to %s", i, step.op.Name, told, change.From, change.To, was, step.want)
		}
		shown := decode[struct {
			DerivedStatus *string `json:"derivedStatus"`
		}](t, last.Data)
		if got := shown.DerivedStatus != nil; got != (step.want != none) {
			t.Errorf("step %d: the event has %s", i, last.Data)
		}
		was = step.want
	}
}
