package tracker

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestEachIdentifier(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CORE-12": "CORE-12", "core-12-fix-login": "core-12", "feature/Core-7_x": "Core-7", "(CORE-1, WEB-2)": "CORE-1 WEB-2",
		"fixes CORE-12.": "CORE-12", "CORE-12a": "", "éCORE-12": "", "CORE-": "", "-12": "", "CORE--12": "", "a-b-3": "b-3",
		"TOOLONGAKEY-1": "", "CORE-123456789012345678901": "", "CORE-1-2": "CORE-1 1-2", "2026-11-20": "2026-11 11-20", "": "", "x": "",
	} {
		var got []string
		eachIdentifier(text, func(s string) bool { got = append(got, s); return true })
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
}

func pullJSON(action, state, title, body, branch string, number int, draft, merged bool) string {
	return fmt.Sprintf(`{"action":%q,"pull_request":{"html_url":"https://github.com/acme/yard/pull/%d","state":%q,"title":%q,"body":%q,"head":{"ref":%q},"draft":%t,"merged":%t},"repository":{"full_name":"Acme/Yard","html_url":"https://github.com/acme/yard"}}`,
		action, number, state, title, body, branch, draft, merged)
}

func TestInbound_PullRequestsFindTheirIssues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		title, body, branch string
		about               string // indexes of the issues
	}{
		"title":              {"Fix core-1 at last", "", "x", "0"},
		"body":               {"Fix", "Closes CORE-2, see CORE-99", "x", "1"},
		"branch name":        {"Fix", "", "ann/core-2-midnight", "1"},
		"own branch":         {"Fix", "", "midnight", "2"},
		"branch elsewhere":   {"Fix", "", "dawn", ""},
		"former identifier":  {"Fix WEB-1", "", "x", "4"},
		"several":            {"CORE-1 and CORE-2", "core-1", "midnight", "0 1 2"},
		"none":               {"Fix", "", "main", ""},
		"unknown identifier": {"UTF-8 and SHA-256", "", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newInboundFixture(t)
			o.route(RouteVCS, "acme/yard")
			team := decode[Team](o, o.admin(CreateTeam, &CreateTeamIn{Name: "Web", Key: "WEB"}).Body)
			made := []Issue{
				o.created(CreateIssueIn{}), o.created(CreateIssueIn{}),
				o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("midnight"), Repo: Some("https://github.com/Acme/Yard.git")}}),
				o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("dawn"), Repo: Some("acme/shed")}}),
				o.created(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(team.ID)}}),
			}
			o.admin(PatchIssue, &PatchIssueIn{ID: string(made[4].ID), IssuePatch: IssuePatch{IssueFields: IssueFields{TeamID: Some(o.home.Team.ID)}}})
			o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON("opened", "open", c.title, c.body, c.branch, 2, false, false))))
			var about []string
			for i, issue := range made {
				if got := o.read(issue.ID); got.PRURL != nil {
					about = append(about, strconv.Itoa(i))
					if *got.PRURL != "https://github.com/acme/yard/pull/2" || *got.PRState != "open" || got.PRCheckState != nil {
						t.Errorf("%d: %v %v %v", i, *got.PRURL, *got.PRState, got.PRCheckState)
					}
				}
			}
			if strings.Join(about, " ") != c.about {
				t.Errorf("issues %v, want %s", about, c.about)
			}
			o.verify()
		})
	}
}

func TestInbound_AnIssueShowsOnePullRequest(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.route(RouteVCS, "acme/yard")
	issue := o.created(CreateIssueIn{})
	pull := func(action, state string, number int, draft, merged bool) {
		t.Helper()
		o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON(action, state, "CORE-1", "", "b", number, draft, merged))))
	}
	checks := func(status, conclusion, sha string, numbers ...int) {
		t.Helper()
		var list []string
		for _, n := range numbers {
			list = append(list, fmt.Sprintf(`{"number":%d,"head":{"sha":"new"}}`, n))
		}
		o.took(o.provider(ReceiveVCS, o.vcs("check_suite", fmt.Sprintf(
			`{"action":"completed","check_suite":{"head_branch":"b","head_sha":%q,"status":%q,"conclusion":%s,"pull_requests":[%s]},"repository":{"full_name":"acme/yard","html_url":"https://github.com/acme/yard"}}`,
			sha, status, conclusion, strings.Join(list, ",")))))
	}
	want := func(number int, state, checks string) {
		t.Helper()
		got := o.read(issue.ID)
		shown := ""
		if got.PRCheckState != nil {
			shown = *got.PRCheckState
		}
		if *got.PRURL != fmt.Sprintf("https://github.com/acme/yard/pull/%d", number) || *got.PRState != state || shown != checks {
			t.Errorf("%s %s %q, want %d %s %q", *got.PRURL, *got.PRState, shown, number, state, checks)
		}
	}
	pull("opened", "open", 1, true, false)
	want(1, "draft", "")
	checks("queued", "null", "new", 1)
	want(1, "draft", "pending")
	checks("completed", `"success"`, "new", 1)
	want(1, "draft", "success")
	checks("", `"failure"`, "new", 1)
	want(1, "draft", "failure")
	checks("", "null", "new", 1)
	want(1, "draft", "pending")
	checks("completed", `"success"`, "new", 1)
	want(1, "draft", "success")
	checks("completed", `"failure"`, "old", 1) // no longer its last commit
	want(1, "draft", "success")
	checks("completed", `"failure"`, "new", 7) // another pull request's
	want(1, "draft", "success")
	pull("ready_for_review", "open", 1, false, false)
	want(1, "open", "success")
	pull("synchronize", "open", 1, false, false)
	want(1, "open", "")
	for conclusion, shown := range map[string]string{"neutral": "neutral", "skipped": "neutral", "timed_out": "failure", "cancelled": "failure", "action_required": "failure"} { //nolint:misspell // the host's spelling
		checks("completed", strconv.Quote(conclusion), "new", 1)
		want(1, "open", shown)
	}
	checks("completed", `"success"`, "new", 1)
	// Events about others that are finished, while the first one is open.
	pull("closed", "closed", 2, false, false)
	want(1, "open", "success")
	pull("labeled", "closed", 2, false, true)
	want(1, "open", "success")
	pull("closed", "closed", 1, false, true)
	want(1, "merged", "success")
	pull("opened", "open", 3, false, false)
	want(3, "open", "")
	pull("opened", "open", 4, false, false)
	pull("closed", "closed", 4, false, true)
	want(4, "merged", "")
	pull("edited", "closed", 2, false, true) // none is open
	want(2, "merged", "")
	o.verify()
}

// A session that waits until its issue's pull request is merged sleeps on when another
// one, merged before, is changed.
func TestInbound_AMergedPullRequestWakesNoWaitForAnother(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.route(RouteVCS, "acme/yard")
	issue := o.created(CreateIssueIn{})
	pull := func(action, state string, number int, merged bool) {
		t.Helper()
		o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON(action, state, "CORE-1", "", "b", number, false, merged))))
	}
	pull("opened", "open", 1, false)
	s := decode[ShownSession](o, o.admin(DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some("a")}).Body)
	o.admin(ClaimSessions, &ClaimSessionsIn{AgentID: Some("a")})
	o.admin(ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(anyOf(WaitCondition{PR: "merged"}))})
	status := func() SessionStatus {
		t.Helper()
		return decode[ShownSession](o, o.admin(SessionByID, &SessionByIDIn{ID: s.ID}).Body).Status
	}
	pull("labeled", "closed", 2, true)
	if got := status(); got != SessionWaiting {
		t.Errorf("after a change of the other one it is %s", got)
	}
	pull("closed", "closed", 1, true)
	if got := status(); got != SessionCreated {
		t.Errorf("after the merge it is %s", got)
	}
	o.verify()
}

// An event that can't be decoded is refused if a workspace has the route, and accepted
// like any other if none does.
func TestInbound_UnreadableEvents(t *testing.T) {
	t.Parallel()
	for event, body := range map[string]string{
		"pull_request": `{"repository":{"full_name":"acme/yard"}}`,
		"check_suite":  `{"repository":{"full_name":"acme/yard"},"check_suite":3}`,
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			o := newInboundFixture(t)
			before := o.state()
			if a := o.took(o.provider(ReceiveVCS, o.vcs(event, body))); !a.Accepted || a.EventID != "" {
				t.Errorf("without a route: %+v", a)
			}
			o.admin(PutInboundRoute, &InboundRouteIn{Kind: RouteVCS, Key: "acme/yard"})
			pending := o.state()
			o.took(o.provider(ReceiveVCS, o.vcs(event, body)))
			if o.state() != pending || before == pending {
				t.Error("something was kept of an event that nobody takes")
			}
			o.route(RouteVCS, "acme/yard")
			_, err := o.provider(ReceiveVCS, o.vcs(event, body))
			wantCode(t, err, CodeBadRequest, event)
		})
	}
}

// Checks find issues by the branch of the suite, and by those of its pull requests, also
// where the event lacks the repository's address.
func TestInbound_ChecksFindTheirIssues(t *testing.T) {
	t.Parallel()
	const (
		pull    = `{"number":1,"head":{"ref":"midnight","sha":"new"}}`
		address = `,"html_url":"https://github.com/acme/yard"`
	)
	for name, c := range map[string]struct {
		address, branch, sha, pulls string
		number                      int // of the pull request that the issue shows; 0 for none
		want                        string
	}{
		"branch, no pull requests":                {"", `"midnight"`, "new", "", 0, "success"},
		"branch, no address":                      {"", `"midnight"`, "new", pull, 0, "success"},
		"branch, no address, shown":               {"", `"midnight"`, "new", pull, 1, "success"},
		"branch, no address, another is shown":    {"", `"midnight"`, "new", pull, 11, ""},
		"branch, no address, older commit":        {"", `"midnight"`, "old", pull, 1, ""},
		"branch, an address that is none":         {`,"html_url":"github"`, `"midnight"`, "new", pull, 0, "success"},
		"head, no address":                        {"", "null", "new", pull, 0, "success"},
		"head":                                    {address, "null", "new", pull, 0, "success"},
		"head of the second":                      {address, `"dawn"`, "new", `{"number":2,"head":{"ref":"dusk","sha":"new"}},` + pull, 0, "success"},
		"head names an issue":                     {address, "null", "new", `{"number":1,"head":{"ref":"core-1-fix","sha":"new"}}`, 0, "success"},
		"head, older commit":                      {address, "null", "old", pull, 0, ""},
		"head, older commit beside the last":      {address, "null", "old", `{"number":2,"head":{"ref":"dusk","sha":"old"}},` + pull, 0, ""},
		"address, pull request without a head":    {address, "null", "new", `{"number":1}`, 1, "success"},
		"no address, pull request without a head": {"", "null", "new", `{"number":1}`, 1, "success"},
		"no address, another without a head":      {"", "null", "new", `{"number":11}`, 1, ""},
		"no address, pull request with nothing":   {"", "null", "new", `{}`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newInboundFixture(t)
			o.route(RouteVCS, "acme/yard")
			issue := o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("midnight")}})
			if c.number != 0 {
				o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON("opened", "open", "Fix", "", "midnight", c.number, false, false))))
			}
			o.took(o.provider(ReceiveVCS, o.vcs("check_suite", fmt.Sprintf(
				`{"action":"completed","repository":{"full_name":"acme/yard"%s},"check_suite":{"status":"completed","conclusion":"success","head_branch":%s,"head_sha":%q,"pull_requests":[%s]}}`,
				c.address, c.branch, c.sha, c.pulls))))
			got := ""
			if shown := o.read(issue.ID).PRCheckState; shown != nil {
				got = *shown
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			o.verify()
		})
	}
}
