package tracker

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The line of an issue stands before the line of a younger team to which the issue was moved.
func TestImport_TakesIssuesOfYoungerTeams(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	team := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "New", Key: "NEW"})
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{TeamID: Some(team.ID)}}})
	to := f.copied()
	want, got := f.issueNow(issue.ID), to.issueNow(issue.ID)
	want.OrganizationID = to.home.Workspace.ID
	if !reflect.DeepEqual(got, want) || *got.Identifier != "NEW-1" {
		t.Errorf("the copy of the issue is %+v, want %+v", got, want)
	}
	view := View{View: to.view(to.home.Workspace.ID.raw())}
	if id, err := view.issueByIdentifier(*issue.Identifier); err != nil || id != issue.id() {
		t.Errorf("the former identifier leads to %s: %v", id, err)
	}
	if next := to.issue(to.admin, to.home.Workspace.ID, team.ID); *next.Identifier != "NEW-2" {
		t.Errorf("the next issue of the team is %s", *next.Identifier)
	}
}

func TestImport_EndsWithTheTeamsOfAllIssues(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const team = "01935000-0002-7000-8000-0000000000bb"
	if err := w.line("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")); err != nil {
		t.Fatal(err)
	}
	wantLineFault(t, w.end(), "The team "+team+" is missing.")
	if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
		t.Fatal(err)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
	w.verify()
}

// Retention keeps the usage of sessions that it deletes, and so do copies.
func TestImport_TakesUsageOfDeletedSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	c := f.claimOne()
	f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: c.Session.ID, Usage: used(10, "m")})
	f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionCompleted)})
	f.retain(PutRetentionIn{EndedSessionsDays: Some(int64(0))})
	f.pass(61 * time.Minute)
	if _, err := f.try(f.admin, SessionByID, &SessionByIDIn{ID: c.Session.ID}); err == nil {
		t.Fatal("the session is still there")
	}
	to := f.copied()
	for _, by := range []string{"session", "issue", "agent", "project", "model", "month"} {
		want, got := f.usage(f.admin, ListUsageIn{GroupBy: by}), to.usage(to.admin, ListUsageIn{GroupBy: by})
		if !reflect.DeepEqual(got, want) || by == "agent" && fmt.Sprint(got) != "[a=10]" {
			t.Errorf("by %s the copy has %v, want %v", by, got, want)
		}
	}
}

// Ids have as many characters in a copy as the operations take, in every script.
func TestImport_TakesTheLongestIDs(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	long := strings.Repeat("\U0001F600", 255)
	issue := f.work(PriorityLow)
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{CycleID: Some(long), ProjectID: Some(long)}}})
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(long)})
	c := f.claimOne()
	f.run(c.LaneToken, LogActivities, &LogActivitiesIn{ID: c.Session.ID, Usage: used(10, "m")})
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(f.work(PriorityLow).ID), ActorID: long, ActorType: GranteeUser})
	text := f.exported(f.home.Workspace.ID, &ExportIn{}, exportWindow)
	for _, kind := range []string{"burndown", "session", "usage", "access_grant"} {
		if !bytes.Contains(text, []byte(`"type":"`+kind+`"`)) {
			t.Errorf("the export has no line of type %s", kind)
		}
	}
	to := f.copied()
	if got := to.session(c.Session.ID); got.AgentID != long {
		t.Errorf("the session of the copy is of agent %.10s", got.AgentID)
	}
	w := newLineImport(t)
	member := func(id string) error {
		return w.line("member", fmt.Sprintf(`{"userId":%q,"role":"member","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, id))
	}
	if err := member(long); err != nil {
		t.Error(err)
	}
	wantLineFault(t, member(long+"x"), "data.userId")
}

// A template names a team and a parent that need not be there, by texts of any form.
func TestImport_TakesTemplatesOfUnknownTeams(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	long := strings.Repeat("\U0001F600", 255)
	for _, id := range []string{"", "some team", long} {
		f.run(f.admin, Templates.Create, &CreateTemplateIn{Name: "t", TemplateFields: TemplateFields{TeamID: Some(TeamID(id)), ParentID: Some(IssueID(id))}})
	}
	list := func(f *agentFixture) (texts []string) {
		for _, tpl := range decode[TemplateList](f, f.run(f.admin, Templates.List, Templates.List.New()).Body).Templates {
			texts = append(texts, fmt.Sprint(tpl.ID, " ", *tpl.TeamID, " ", *tpl.ParentID))
		}
		return texts
	}
	if got, want := list(f.copied()), list(f); len(want) != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("the templates of the copy are %q, want %q", got, want)
	}
	w := newLineImport(t)
	template := func(team string) error {
		return w.line("template", fmt.Sprintf(`{"id":"01935000-0002-7000-8000-0000000000cc","name":"t","teamId":%q,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, team))
	}
	wantLineFault(t, template(long+"x"), "data.teamId must be at most 255 characters long.")
	wantLineFault(t, w.line("template", `{"id":"no id","name":"t","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`), "data.id")
}

// A session that was registered after its budget had been used up runs on in a copy, as it does
// where it is, until its next report.
func TestImport_EndsNoSessionForItsBudget(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.putBudget("workspace", 5, -1, BudgetTotal)
	f.beat(f.start(f.work(PriorityLow), "a"), 10)
	issue := f.work(PriorityLow)
	running := f.registerAs(f.admin, issue.ID, "late").Session
	queued := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")}).ID
	to := f.copied()
	want, got := f.issueNow(issue.ID), to.issueNow(issue.ID)
	want.OrganizationID = to.home.Workspace.ID
	if s := to.session(running.ID); s.Status != SessionRunning || !reflect.DeepEqual(got, want) {
		t.Errorf("the session of the copy is %s, its issue %+v, want %+v", s.Status, got, want)
	}
	if n := len(to.events()); n != 0 {
		t.Errorf("the import made %d events", n)
	}
	to.wantReason(queued, "budget [workspace] 0")
	to.run(to.admin, Heartbeat, &HeartbeatIn{ID: running.ID})
	if s := to.session(running.ID); s.Status != SessionCanceled {
		t.Errorf("after a heartbeat the session of the copy is %s", s.Status)
	}
	to.verify()
}
