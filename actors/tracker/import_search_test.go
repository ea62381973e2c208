package tracker

import (
	"fmt"
	"testing"
)

// Issues that come behind a newer one, which the owner makes while the import runs, are found: one that
// comes while the newer one is indexed, and one that comes later.
func TestImport_IndexesIssuesBehindNewerOnes(t *testing.T) {
	t.Parallel()
	const team = "01935000-0001-7000-8000-0000000000bb"
	w := newLineImport(t)
	owner, org := w.home.Token.Secret, w.home.Workspace.ID
	w.bufferOf(org.raw()).indexFew = 1
	line := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	line("team", fmt.Sprintf(importedTeam, team, "ENG"))
	w.issue(owner, org, w.team(owner, org, &CreateTeamIn{Key: "OWN"}).ID)
	w.between = func(step int) {
		if step == 2 { // the segment is made, and not yet put into the index
			line("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1"))
		}
	}
	if _, err := w.do(ServiceRequest("", org.raw()), indexSearchOp, &TimerIn{}); err != nil {
		t.Fatal(err)
	}
	w.between = nil
	line("issue", fmt.Sprintf(importedIssue, 2, team, 2, "ENG-2"))
	finds := func() {
		t.Helper()
		in := &ListIssuesIn{Limit: 10, IssueFilter: IssueFilter{Search: Some("eng")}}
		if found := decode[IssuePage](t, w.must(owner, org, ListIssues, in).Body).Issues; len(found) != 2 {
			t.Errorf("a search finds %d of 2 imported issues", len(found))
		}
	}
	finds()
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.pass(indexSoon)
	finds()
	w.verify()
}
