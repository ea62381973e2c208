package tracker

import (
	"fmt"
	"testing"
)

// An identifier of a file may have the key of another team than that of its issue: of one that is
// there, or of one that comes later. No team gives it to another issue.
func TestImport_GivesNoIdentifierTwice(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		eng = "01935000-0001-7000-8000-0000000000bb"
		ops = "01935000-0002-7000-8000-0000000000bb"
		web = "01935000-0003-7000-8000-0000000000bb"
	)
	take := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	former := func(issue int, identifier string) string {
		return fmt.Sprintf(`{"issueId":"01935001-%04x-7000-8000-000000000000","identifier":%q}`, issue, identifier)
	}
	take("team", fmt.Sprintf(importedTeam, eng, "ENG"))
	take("team", fmt.Sprintf(importedTeam, ops, "OPS"))
	take("issue", fmt.Sprintf(importedIssue, 1, eng, 1, "OPS-1"))
	take("former_identifier", former(1, "OPS-3"))
	take("issue", fmt.Sprintf(importedIssue, 2, eng, 2, "WEB-2"))
	take("former_identifier", former(2, "WEB-4"))
	take("retired_team_key", `{"key":"WEB","lastNumber":3}`) // the identifiers have a higher one
	take("team", fmt.Sprintf(importedTeam, web, "WEB"))
	for _, row := range []struct{ kind, data, why string }{
		{"former_identifier", former(1, "ENG-01"), "data.identifier"},
		{"former_identifier", former(1, "ENG-18446744073709551615"), "data.identifier"},
		{"former_identifier", former(1, "ENG-0"), "data.identifier"},
		{"former_identifier", former(1, "ENG"), "data.identifier"},
		{"team_number", `{"teamId":"` + eng + `","lastNumber":18446744073709551615}`, "data.lastNumber"},
		{"retired_team_key", `{"key":"NEW","lastNumber":18446744073709551615}`, "data.lastNumber"},
	} {
		wantLineFault(t, w.line(row.kind, row.data), row.why)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
	for team, want := range map[TeamID]string{eng: "ENG-3", ops: "OPS-4", web: "WEB-5"} {
		if next := w.issue(w.home.Token.Secret, w.home.Workspace.ID, team); *next.Identifier != want {
			t.Errorf("the next issue of %s is %s, want %s", team, *next.Identifier, want)
		}
	}
	w.verify()
}

// A team has a number once, although its key was another one when it gave the number.
func TestImport_TakesANumberOfATeamOnce(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		eng = "01935000-0001-7000-8000-0000000000bb"
		ops = "01935000-0002-7000-8000-0000000000bb"
	)
	take := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	take("issue", fmt.Sprintf(importedIssue, 1, eng, 1, "OLD-1"))
	take("issue", fmt.Sprintf(importedIssue, 2, eng, 2, "ENG-2"))
	take("issue", fmt.Sprintf(importedIssue, 3, ops, 1, "OPS-1"))
	for _, row := range []struct {
		number int
		as, of string
	}{{1, "ENG-1", "OLD-1"}, {2, "OLD-2", "ENG-2"}, {1, "WEB-1", "OLD-1"}} {
		wantLineFault(t, w.line("issue", fmt.Sprintf(importedIssue, 4, eng, row.number, row.as)), "data.number: The team has it for "+row.of)
	}
	take("issue", fmt.Sprintf(importedIssue, 4, ops, 2, "OLD-2"))
	take("team", fmt.Sprintf(importedTeam, eng, "ENG"))
	take("team", fmt.Sprintf(importedTeam, ops, "OPS"))
	if err := w.end(); err != nil {
		t.Error(err)
	}
	w.verify()
}
