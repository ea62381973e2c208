package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// archivedFixture has an issue with a pull request, about which version control tells.
type archivedFixture struct {
	*agentFixture
	calls *inboundFixture
	issue Issue
}

func newArchivedFixture(t *testing.T) *archivedFixture {
	t.Helper()
	o := newInboundFixture(t)
	o.route(RouteVCS, "acme/yard")
	f := &archivedFixture{agentFixture: &agentFixture{testService: o.testService, home: o.home, admin: o.home.Token.Secret}, calls: o}
	f.issue = f.work(PriorityLow)
	f.pull("opened", "open", false)
	return f
}

func (f *archivedFixture) tell(event, body string) {
	f.Helper()
	got, err := f.calls.provider(ReceiveVCS, f.calls.vcs(event, body))
	if archived := f.isArchived(f.issue.ID); err != nil || (len(got.IssueIDs) == 0) != archived {
		f.Fatalf("%s: %+v, %v, archived: %t", event, got, err, archived)
	}
	f.verify()
}

func (f *archivedFixture) pull(action, state string, merged bool) {
	f.Helper()
	f.tell("pull_request", fmt.Sprintf(`{"action":%q,"pull_request":{"html_url":"https://git.example/acme/yard/pull/1","title":%q,"state":%q,"merged":%t,"head":{"ref":"fix"}},"repository":{"full_name":"acme/yard"}}`,
		action, *f.issue.Identifier, state, merged))
}

func (f *archivedFixture) succeed() {
	f.Helper()
	f.tell("check_suite", `{"action":"completed","check_suite":{"head_branch":"fix","status":"completed","conclusion":"success","pull_requests":[{"number":1}]},"repository":{"full_name":"acme/yard","html_url":"https://git.example/acme/yard"}}`)
}

func (f *archivedFixture) archive() {
	f.Helper()
	f.setStatus(f.issue.ID, StatusDone)
	f.retain(PutRetentionIn{ClosedIssuesDays: Some(int64(0))})
	f.pass(2 * time.Hour)
	if !f.isArchived(f.issue.ID) {
		f.Fatal("the issue is not archived")
	}
}

// Calls of version control leave an archived issue as it is, and meet the conditions of its sessions.
func TestReceiveVCS_WakesSessionsOfAnArchivedIssue(t *testing.T) {
	t.Parallel()
	f := newArchivedFixture(t)
	issue := f.issue
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	f.waits(allOf(WaitCondition{PR: "merged"}, WaitCondition{Checks: "success"}))
	f.archive()
	was := f.issueNow(issue.ID)

	f.pull("closed", "closed", true)
	if got := f.session(s.ID).Status; got != SessionWaiting {
		t.Fatalf("the session is %s after one of two conditions", got)
	}
	f.succeed()
	if got := f.session(s.ID).Status; got != SessionCreated {
		t.Errorf("the session is %s", got)
	}
	if now := f.issueNow(issue.ID); now.UpdatedAt != was.UpdatedAt || fromPtr(now.PRState) != "open" || now.PRCheckState != nil {
		t.Errorf("the issue has changed: %s, %s", fromPtr(now.PRState), fromPtr(now.PRCheckState))
	}
	if c := f.claimOne(); len(c.WokenBy) != 1 || c.WokenBy[0].Condition.Checks == "" {
		t.Errorf("woken by %+v", c.WokenBy)
	}
	f.verify()
}

// A wait that begins after the calls about an archived issue goes by what they have told, also in a copy of the
// workspace. An issue that is brought back has it.
func TestReceiveVCS_ToldOfAnArchivedIssue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		calls  func(f *archivedFixture)
		woken  bool
		state  string
		checks string
	}{
		"nothing":    {func(*archivedFixture) {}, false, "open", ""},
		"one of two": {func(f *archivedFixture) { f.pull("closed", "closed", true) }, false, "merged", ""},
		"both":       {func(f *archivedFixture) { f.pull("closed", "closed", true); f.succeed() }, true, "merged", "success"},
		"both, and repeated": {func(f *archivedFixture) {
			f.succeed()
			f.pull("closed", "closed", true)
			f.pull("closed", "closed", true)
		}, true, "merged", "success"},
		"closed, then reopened": {func(f *archivedFixture) {
			f.succeed()
			f.pull("closed", "closed", true)
			f.pull("reopened", "open", false)
		}, false, "open", "success"},
	} {
		f := newArchivedFixture(t)
		s := f.dispatch(f.issue.ID, DispatchIssueIn{})
		f.archive()
		was := f.issueNow(f.issue.ID)
		row.calls(f)
		if now := f.issueNow(f.issue.ID); !equalJSON(t, now, was) {
			t.Errorf("%s: the issue is now %+v, it was %+v", name, now, was)
		}
		want := SessionWaiting
		if row.woken {
			want = SessionCreated
		}
		f.waits(allOf(WaitCondition{PR: "merged"}, WaitCondition{Checks: "success"}))
		if got := f.session(s.ID).Status; got != want {
			t.Errorf("%s: the session is %s, want %s", name, got, want)
		}
		f.verify()
		copied := f.copiedIn(f.exportedLines(), 1000, time.Hour, func(*agentFixture) {})
		for place, in := range map[string]*agentFixture{"here": f.agentFixture, "in the copy": copied} {
			back := decode[Issue](t, in.run(in.admin, UnarchiveIssue, &UnarchiveIssueIn{ID: string(f.issue.ID)}).Body)
			if fromPtr(back.PRState) != row.state || fromPtr(back.PRCheckState) != row.checks {
				t.Errorf("%s: brought back %s its pull request is %q, its checks %q", name, place, fromPtr(back.PRState), fromPtr(back.PRCheckState))
			}
			in.verify()
		}
	}
}

// The pull request that was told of an archived issue is imported with the words and lengths of an issue's own fields.
func TestImport_ToldOfAnArchivedIssue(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	issue := func(n int, more string) string {
		line := fmt.Sprintf(importedIssue, n, "01935000-0001-7000-8000-0000000000bb", n, fmt.Sprint("ENG-", n))
		return strings.Replace(line, `"status":"todo"`, `"status":"done"`+more, 1)
	}
	closing := func(n int, pull string) error {
		return w.line("closing", fmt.Sprintf(`{"issueId":"01935001-%04x-7000-8000-000000000000","closedAt":"2026-01-02T00:00:00.000Z","pull":%s}`, n, pull))
	}
	for n, more := range []string{"", `,"archivedAt":"2026-01-03T00:00:00.000Z"`} {
		if err := w.line("issue", issue(n+1, more)); err != nil {
			t.Fatal(err)
		}
	}
	wantLineFault(t, closing(1, `{"prState":"merged"}`), "data.pull is of archived issues only.")
	wantLineFault(t, closing(2, `{"prState":"lost"}`), "data.pull.prState")
	wantLineFault(t, closing(2, `{"prCheckState":"lost"}`), "data.pull.prCheckState")
	wantLineFault(t, closing(2, fmt.Sprintf(`{"prUrl":%q}`, strings.Repeat("u", maxURL+1))), "data.pull.prUrl")
	if err := closing(2, `{"prUrl":"https://git.example/pull/1","prState":"merged","prCheckState":"success"}`); err != nil {
		t.Error(err)
	}
	w.verify()
}
