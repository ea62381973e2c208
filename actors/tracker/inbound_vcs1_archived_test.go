package tracker

import (
	"fmt"
	"testing"
	"time"
)

// Calls of version control leave an archived issue as it is, and meet the conditions of its sessions.
func TestReceiveVCS_WakesSessionsOfAnArchivedIssue(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.route(RouteVCS, "acme/yard")
	f := &agentFixture{testService: o.testService, home: o.home, admin: o.home.Token.Secret}
	issue := f.work(PriorityLow)
	tell := func(event, body string) {
		t.Helper()
		got, err := o.provider(ReceiveVCS, o.vcs(event, body))
		if archived := f.isArchived(issue.ID); err != nil || (len(got.IssueIDs) == 0) != archived {
			t.Fatalf("%s: %+v, %v, archived: %t", event, got, err, archived)
		}
		f.verify()
	}
	pull := func(action, state string, merged bool) {
		t.Helper()
		tell("pull_request", fmt.Sprintf(`{"action":%q,"pull_request":{"html_url":"https://git.example/acme/yard/pull/1","title":%q,"state":%q,"merged":%t,"head":{"ref":"fix"}},"repository":{"full_name":"acme/yard"}}`,
			action, *issue.Identifier, state, merged))
	}
	pull("opened", "open", false)
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	f.waits(allOf(WaitCondition{PR: "merged"}, WaitCondition{Checks: "success"}))
	f.setStatus(issue.ID, StatusDone)
	f.retain(PutRetentionIn{ClosedIssuesDays: Some(int64(0))})
	f.pass(2 * time.Hour)
	if !f.isArchived(issue.ID) {
		t.Fatal("the issue is not archived")
	}
	was := f.issueNow(issue.ID)

	pull("closed", "closed", true)
	if got := f.session(s.ID).Status; got != SessionWaiting {
		t.Fatalf("the session is %s after one of two conditions", got)
	}
	tell("check_suite", `{"action":"completed","check_suite":{"head_branch":"fix","status":"completed","conclusion":"success","pull_requests":[{"number":1}]},"repository":{"full_name":"acme/yard","html_url":"https://git.example/acme/yard"}}`)
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
