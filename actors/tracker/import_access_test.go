package tracker

import (
	"fmt"
	"testing"
)

// Members have no access while lines are still to come: the grants that hide an issue from them may
// be among these lines.
func TestImport_ShowsMembersNothingUntilItsEnd(t *testing.T) {
	t.Parallel()
	const team = "01935000-0001-7000-8000-0000000000bb"
	const issue = "01935001-0001-7000-8000-000000000000"
	w := newLineImport(t)
	_, member := w.member(w.home, RoleMember, "write")
	_, admin := w.member(w.home, RoleAdmin, "admin")
	read := func(credential string) error {
		_, err := w.ask(credential, w.home.Workspace.ID, IssueByID, &IssueByIDIn{ID: issue})
		return err
	}
	for _, line := range [][2]string{
		{"team", fmt.Sprintf(importedTeam, team, "ENG")},
		{"issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")},
		{"access_grant", `{"id":"01935002-0001-7000-8000-000000000000","issueId":"` + issue + `","actorId":"ann","actorType":"user","createdAt":"2026-01-01T00:00:00.000Z"}`},
	} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
		wantCode(t, read(member), CodeUnavailable)
	}
	if err := read(admin); err != nil {
		t.Errorf("an admin: %v", err)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, read(member), CodeNotFound)
	if _, err := w.ask(member, w.home.Workspace.ID, ListIssues, &ListIssuesIn{Limit: 10}); err != nil {
		t.Errorf("after the last line: %v", err)
	}
	w.verify()
}
