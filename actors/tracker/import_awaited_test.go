package tracker

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/storage"
)

// Lines of a draft and of a ticket with holes for the issue.
const (
	importedDraft  = `{"id":"01935000-0003-7000-8000-000000000000","entityType":"issue","issueId":%q,"kind":"comment","status":"pending","createdById":"ann","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z","payload":{"body":"B"}}`
	importedTicket = `{"id":"01935000-0004-7000-8000-000000000000","source":"sms","subject":"S","from":"F","status":"open","issueId":%q,"lastMessageAt":"2026-01-01T00:00:00.000Z","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`
)

// The issue of a draft or a ticket may come later in the file, and must come.
func TestImport_EndsWithTheIssuesOfDraftsAndTickets(t *testing.T) {
	t.Parallel()
	const (
		team  = "01935000-0001-7000-8000-0000000000bb"
		issue = "01935001-0001-7000-8000-000000000000"
	)
	for kind, data := range map[string]string{"draft": importedDraft, "ticket": importedTicket} {
		w := newLineImport(t)
		if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
			t.Fatal(err)
		}
		if err := w.line(kind, fmt.Sprintf(data, issue)); err != nil {
			t.Fatal(err)
		}
		wantLineFault(t, w.end(), "The issues of 1 draft or ticket are missing.")
		if err := w.line("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")); err != nil {
			t.Fatal(err)
		}
		if err := w.end(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		w.verify()
	}
}

// Verify takes what refers to later lines of an import that is under way for no damage. It says so,
// and finds what no later line mends.
func TestImport_IsVerifiedWhileItRuns(t *testing.T) {
	t.Parallel()
	const (
		team   = "01935000-0001-7000-8000-0000000000bb"
		parent = "01935001-0002-7000-8000-000000000000"
	)
	w := newLineImport(t)
	verified := func() *storage.Report {
		t.Helper()
		report, err := storage.Verify(t.Context(), w.db, Schema())
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	child := strings.Replace(fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1"), `"title"`, `"parentId":"`+parent+`","title"`, 1)
	if err := w.line("issue", child); err != nil {
		t.Fatal(err)
	}
	report := verified()
	if !report.Clean() || report.Awaited == 0 || len(report.Unfinished) != 1 || report.Unfinished[0] != w.home.Workspace.ID.raw() {
		t.Errorf("while lines are to come: %+v", report)
	}
	for _, line := range [][2]string{{"team", fmt.Sprintf(importedTeam, team, "ENG")}, {"issue", fmt.Sprintf(importedIssue, 2, team, 2, "ENG-2")}} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if report = verified(); !report.Clean() || report.Awaited != 0 || len(report.Unfinished) != 0 {
		t.Errorf("after the last line: %+v", report)
	}
}
