package tracker

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/actors/tracker/resultschema"
)

// Lists, numbers and JSON of imported agents and sessions have the bounds of the ordinary operations.
func TestImport_BoundsAgentsAndSessions(t *testing.T) {
	t.Parallel()
	const at = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	repos := func(n int) string {
		return fmt.Sprintf("%q", list(n, `{"repo":"o/`+strings.Repeat("n", 253)+`","access":"write"}`))
	}
	schema := func(size int) string { return `{"description":"` + strings.Repeat("x", size-18) + `"}` }
	w := newLineImport(t)
	n := 0
	for _, row := range []struct{ kind, field, good, bad string }{
		{"agent", "maxConcurrentSessions", "1", "0"},
		{"agent", "maxConcurrentSessions", "1000", "1001"},
		{"agent", "maxConcurrentSessions", "null", "-5"},
		{"agent", "concurrencyBy", `["repo","branch","project"]`, list(4, `"repo"`)},
		{"agent", "concurrencyBy", `[]`, `["size"]`},
		{"agent", "retry", `{"maxAttempts":20,"backoffSeconds":86400,"maxBackoffSeconds":31536000,"on":["failed","lapsed"]}`, `{"maxAttempts":1000000000000000,"backoffSeconds":0,"on":[]}`},
		{"agent", "retry", `{"maxAttempts":1,"backoffSeconds":0,"maxBackoffSeconds":null,"on":[]}`, `{"maxAttempts":1,"backoffSeconds":0,"on":["failed","failed"]}`},
		{"session", "resultSchema", schema(resultschema.MaxSchema), schema(resultschema.MaxSchema + 1)},
		{"session", "resultSchema", "null", `["object"]`},
		{"session", "structuredResult", `"` + strings.Repeat("x", maxStructured-2) + `"`, `"` + strings.Repeat("x", maxStructured-1) + `"`},
		{"session", "resultSchemaErrors", list(21, `"`+strings.Repeat("x", 810)+`"`), list(101, `"x"`)},
		{"session", "resultSchemaErrors", "null", list(9, `"`+strings.Repeat("x", 8<<10)+`"`)},
		{"session", "secondaryRepos", repos(5), repos(6)},
		{"session", "secondaryRepos", "null", `"[{"`},
		{"session", "secondaryRepos", `"[]"`, fmt.Sprintf("%q", "["+strings.Repeat(" ", 16<<10)+"]")},
		{"session", "retry", `{"maxAttempts":2,"backoffSeconds":1,"on":["failed"]}`, `{"maxAttempts":2,"backoffSeconds":1,"on":` + list(50, `"failed"`) + `}`},
	} {
		for _, value := range []string{row.bad, row.good} {
			n++
			record := fmt.Sprintf(`"id":"01935001-%04x-7000-8000-000000000000",%q:%s,%s`, n, row.field, value, at)
			if row.kind == "agent" {
				record += `,"name":"A"`
			} else {
				record += `,"issueId":"01935000-0001-7000-8000-0000000000dd","agentId":"a","actorId":"a","actorType":"agent","status":"completed","provider":"p"`
			}
			err := w.line(row.kind, "{"+record+"}")
			if bad := value == row.bad; bad != (err != nil) || bad && !strings.Contains(err.Error(), "data."+row.field) {
				t.Errorf("%s with the %s %.60s: %v", row.kind, row.field, value, err)
			}
		}
	}
	w.verify()
}

// An issue has at most maxActiveSessions that have not ended: a change of the issue goes through no more.
func TestImport_BoundsTheUnfinishedSessionsOfAnIssue(t *testing.T) {
	t.Parallel()
	const team, issue = "01935000-0001-7000-8000-0000000000bb", "01935001-0001-7000-8000-000000000000"
	w := newLineImport(t)
	for _, line := range [][2]string{{"team", fmt.Sprintf(importedTeam, team, "ENG")}, {"issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")}} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
	}
	session := func(n int, status SessionStatus) error {
		return w.line("session", fmt.Sprintf(`{"id":"01935003-0001-7%03x-8000-000000000000","issueId":%q,"agentId":"a","provider":"p","actorId":"x","actorType":"user",`+
			`"status":%q,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, n, issue, status))
	}
	for n := range maxActiveSessions {
		if err := session(n, SessionCreated); err != nil {
			t.Fatal(n, err)
		}
	}
	wantLineFault(t, session(maxActiveSessions, SessionCreated), fmt.Sprintf("has %d sessions that have not ended", maxActiveSessions))
	if err := session(maxActiveSessions, SessionCompleted); err != nil {
		t.Error(err)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.must(w.home.Token.Secret, w.home.Workspace.ID, PatchIssue, &PatchIssueIn{ID: issue, IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityUrgent)}}}, "")
	w.verify()
}
