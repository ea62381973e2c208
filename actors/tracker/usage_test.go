package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// usage asks for usage and lists the groups with their costs.
func (f *agentFixture) usage(credential string, in ListUsageIn) (list []string) {
	f.Helper()
	for _, g := range decode[UsageGroups](f, f.run(credential, ListUsage, &in).Body).Groups {
		list = append(list, fmt.Sprint(fromPtr(g.Group), "=", g.CostMicros))
	}
	return list
}

func used(cost int64, model string) Opt[UsageIn] {
	in := UsageIn{InputTokens: 2 * cost, CostMicros: cost}
	if model != "" {
		in.Model = Some(model)
	}
	return Some(in)
}

func TestUsage_ByEveryOriginAndTime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	open, secret := f.work(PriorityLow), f.work(PriorityLow)
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(open.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: Some("bridge")}}})
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(secret.ID), ActorID: "nobody", ActorType: GranteeUser})
	_, member := f.testService.member(f.home, RoleMember, "write")
	var lanes []ClaimedSession
	for n, issue := range []Issue{open, secret} {
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some([]string{"a", "b"}[n])})
		lanes = append(lanes, f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0])
	}
	a, b := lanes[0], lanes[1]
	f.run(a.LaneToken, LogActivities, &LogActivitiesIn{ID: a.Session.ID, Usage: used(10, "m")})
	between := At(f.now.Add(time.Minute))
	f.pass(2 * time.Minute)
	f.run(b.LaneToken, Heartbeat, &HeartbeatIn{ID: b.Session.ID, Usage: used(100, "m")})
	for range 70 {
		f.pass(40 * time.Minute) // into December
		for _, c := range lanes {
			f.run(c.LaneToken, Heartbeat, &HeartbeatIn{ID: c.Session.ID})
		}
	}
	december := At(f.now)
	f.run(a.LaneToken, ReportSession, &ReportSessionIn{ID: a.Session.ID, Status: Some(SessionCompleted), Usage: used(1000, "")})
	f.verify()
	if got := f.session(a.Session.ID).Usage; got != (Usage{InputTokens: 2020, CostMicros: 1010}) {
		t.Errorf("the session shows %+v", got)
	}
	from := func(at Timestamp) ListUsageIn { return ListUsageIn{From: Some(string(at))} }
	to := func(at Timestamp) ListUsageIn { return ListUsageIn{To: Some(string(at))} }
	for _, row := range []struct {
		credential, by string
		in             ListUsageIn
		want           string
	}{
		{f.admin, "agent", ListUsageIn{}, "[a=1010 b=100]"},
		{f.admin, "project", ListUsageIn{}, "[bridge=1010 =100]"},
		{f.admin, "model", ListUsageIn{}, "[=1000 m=110]"},
		{f.admin, "month", ListUsageIn{}, "[2026-11=110 2026-12=1000]"},
		{f.admin, "issue", ListUsageIn{}, fmt.Sprintf("[%s=1010 %s=100]", open.ID, secret.ID)},
		{f.admin, "session", ListUsageIn{}, fmt.Sprintf("[%s=1010 %s=100]", a.Session.ID, b.Session.ID)},
		{f.admin, "agent", from(between), "[a=1000 b=100]"},
		{f.admin, "agent", to(between), "[a=10]"},
		{f.admin, "month", from(between), "[2026-11=100 2026-12=1000]"},
		{f.admin, "agent", ListUsageIn{From: Some(string(between)), To: Some(string(december))}, "[b=100]"},
		{f.admin, "agent", from(At(f.now.Add(time.Hour))), "[]"},
		{f.admin, "agent", ListUsageIn{From: Some("1900-01-01T00:00:00Z"), To: Some("1901-01-01T00:00:00Z")}, "[]"},
		{f.admin, "agent", to("9999-01-01T00:00:00.000Z"), "[a=1010 b=100]"},
		{member, "agent", ListUsageIn{}, "[a=1010]"},
		{member, "issue", ListUsageIn{}, fmt.Sprintf("[%s=1010]", open.ID)},
		{member, "issue", from("1900-01-01T00:00:00Z"), fmt.Sprintf("[%s=1010]", open.ID)},
		{member, "session", ListUsageIn{}, fmt.Sprintf("[%s=1010]", a.Session.ID)},
		{member, "session", from("1900-01-01T00:00:00Z"), fmt.Sprintf("[%s=1010]", a.Session.ID)},
		{f.admin, "session", from("1900-01-01T00:00:00Z"), fmt.Sprintf("[%s=1010 %s=100]", a.Session.ID, b.Session.ID)},
		{f.admin, "session", to(between), fmt.Sprintf("[%s=10]", a.Session.ID)},
		{member, "month", ListUsageIn{}, "[2026-11=10 2026-12=1000]"},
	} {
		row.in.GroupBy = row.by
		if got := fmt.Sprint(f.usage(row.credential, row.in)); got != row.want {
			t.Errorf("%s from %s to %s: %s, want %s", row.by, row.in.From.Value, row.in.To.Value, got, row.want)
		}
	}
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(open.ID)})
	if got := fmt.Sprint(f.usage(f.admin, ListUsageIn{GroupBy: "issue"}), f.usage(f.admin, ListUsageIn{GroupBy: "agent"})); got != fmt.Sprintf("[%s=100] [a=1010 b=100]", secret.ID) {
		t.Errorf("after the deletion: %s", got)
	}
	f.verify()
}

// Usage that was hidden from a caller stays hidden when its issue is deleted, and its team as well.
// That of other deleted issues stays in the sums of all.
func TestUsage_OfDeletedIssues(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ private, another, open bool }{
		"restricted": {}, "restricted, beside another restricted one": {another: true}, "of a private team": {private: true}, "open": {open: true},
	} {
		f := newAgentFixture(t)
		_, member := f.testService.member(f.home, RoleMember, "write")
		var team Team
		in := CreateIssueIn{Title: "Work"}
		if row.private {
			team = f.testService.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "Private", Key: "PRV", IsPublic: Some(false)})
			in.TeamID = Some(team.ID)
		}
		issue := decode[CreatedIssue](f, f.run(f.admin, CreateIssue, &in).Body)
		restrict := func(id IssueID) {
			f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(id), ActorID: "nobody", ActorType: GranteeUser})
		}
		if !row.private && !row.open {
			restrict(issue.ID)
		}
		if row.another {
			restrict(f.work(PriorityLow).ID)
		}
		shared := f.work(PriorityLow)
		for id, agent := range map[IssueID]string{issue.ID: "gone", shared.ID: "there"} {
			f.dispatch(id, DispatchIssueIn{AgentID: Some(agent)})
			c := f.claim(ClaimSessionsIn{AgentID: Some(agent)})[0]
			f.run(c.LaneToken, Heartbeat, &HeartbeatIn{ID: c.Session.ID, Usage: used(100, agent+"-model")})
		}
		look := func(when string) {
			t.Helper()
			for _, by := range []string{"agent", "model", "month", "project", "session", "issue"} {
				all := 2
				if by == "month" || by == "project" {
					all = 1
				}
				if got := f.usage(f.admin, ListUsageIn{GroupBy: by}); len(got) != all && by != "issue" {
					t.Errorf("%s, %s: by %s an admin gets %v", name, when, by, got)
				}
				got, sum := f.usage(member, ListUsageIn{GroupBy: by}), "=100"
				if row.open && by == "month" || row.open && by == "project" {
					sum = "=200"
				}
				if hidden := !row.open && len(got) != 1; hidden || !strings.HasSuffix(got[0], sum) {
					t.Errorf("%s, %s: by %s a member gets %v", name, when, by, got)
				}
			}
		}
		look("issue there")
		f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
		look("issue deleted")
		if row.private {
			f.run(f.admin, DeleteTeam, &TeamByIDIn{ID: team.ID})
			look("team deleted")
		}
		if got := f.queueNamesOf(member); strings.Contains(got, "gone") {
			t.Errorf("%s: the queue names %s", name, got)
		}
		f.verify()
	}
}

// A request adds up no more groups than its memory is meant for. Groups that have a kept sum are not
// limited: all but the most expensive are dropped as they come.
func TestUsage_BoundsItsMemory(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for n := range 3 {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some(fmt.Sprint("agent", n))})
		c := f.claim(ClaimSessionsIn{})[0]
		f.run(c.LaneToken, Heartbeat, &HeartbeatIn{ID: c.Session.ID, Usage: used(int64(n+1), "m")})
	}
	for by, bounded := range map[string]bool{"session": true, "issue": true, "agent": true, "model": false} {
		list := NewQuery[ListUsageIn, UsageGroups]("list", "", Needs{}, func(v *View, in *ListUsageIn) (Reply, error) {
			q := usageQuery{v: v, by: by, most: 2}
			return Reply{}, q.between(nil, nil)
		})
		if _, err := f.try(f.admin, list, &ListUsageIn{}); bounded {
			wantCode(t, err, CodeConflict)
		} else if err != nil {
			t.Errorf("by %s: %v", by, err)
		}
		if got := len(f.usage(f.admin, ListUsageIn{GroupBy: by})); (got == 3) != bounded {
			t.Errorf("by %s there are %d groups", by, got)
		}
	}
	q := usageQuery{}
	for n := range 5 * maxUsageGroups {
		if q.find(fmt.Sprint(n), &Usage{CostMicros: int64(n)}); len(q.found) >= 2*maxUsageGroups {
			t.Fatalf("%d groups are kept", len(q.found))
		}
	}
	if all := q.sorted(); len(all) != maxUsageGroups || all[0].CostMicros != 5*maxUsageGroups-1 || all[maxUsageGroups-1].CostMicros != 4*maxUsageGroups {
		t.Errorf("%d groups, from %d down to %d", len(all), all[0].CostMicros, all[len(all)-1].CostMicros)
	}
}

// Usage is a change of the session, which its event tells.
func TestUsage_IsInTheEventOfItsReport(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	issue := decode[Issue](t, w.must(user, org, CreateIssue, &CreateIssueIn{Title: "Work"}).Body)
	w.must(user, org, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some("bot")})
	id := decode[ClaimedSessions](t, w.must(user, org, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions[0].Session.ID
	events := func() []Event {
		return decode[EventPage](t, w.must(user, org, ListEvents, &ListEventsIn{Types: "session.*"}).Body).Events
	}
	before := len(events())
	used := Some(UsageIn{InputTokens: 2, CostMicros: 5})
	w.must(user, org, LogActivities, &LogActivitiesIn{ID: id, Usage: used})
	w.must(user, org, Heartbeat, &HeartbeatIn{ID: id, Usage: used})
	w.must(user, org, Heartbeat, &HeartbeatIn{ID: id})
	w.must(user, org, ReportSession, &ReportSessionIn{ID: id, Usage: used})
	list := events()[before:]
	if len(list) != 3 {
		t.Fatalf("%d events of 3 reports of usage", len(list))
	}
	sum := func(n int) string {
		return fmt.Sprintf(`{"inputTokens":%d,"outputTokens":0,"cacheReadTokens":0,"costMicros":%d}`, 2*n, 5*n)
	}
	for i, e := range list {
		c := e.Changes["usage"]
		if e.Type != "session.updated" || string(c.From) != sum(i) || string(c.To) != sum(i+1) {
			t.Errorf("event %d is %s, and usage went from %s to %s", i, e.Type, c.From, c.To)
		}
		if data := string(e.Data); !strings.HasSuffix(data, `,"derivedStatus":null,"usage":`+sum(i+1)+"}") {
			t.Errorf("event %d has the session %s", i, data)
		}
	}
}

// A log of usage that can't be read lacks no message: it was meant to be without an activity.
func TestLog_FaultsOfUsageAndPlanAlone(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"usage", "plan"} {
		faults := &Faults{}
		faults.Add(field, "Must be something else.")
		(&LogActivitiesIn{}).Validate(faults)
		if faults.Has("message") {
			t.Errorf("a faulty %s is reported as a missing message, too", field)
		}
	}
	faults := &Faults{}
	(&LogActivitiesIn{}).Validate(faults)
	if !faults.Has("message") {
		t.Error("an empty log is accepted")
	}
}
