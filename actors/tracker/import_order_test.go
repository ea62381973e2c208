package tracker

import (
	"fmt"
	"testing"
)

// An export has the grants of an issue, and the activities of a session, in the order of their ids. One that is
// older than its issue or session would come first in the export of the workspace, which no import could take.
func TestImport_RefusesRecordsOlderThanTheirOwner(t *testing.T) {
	t.Parallel()
	const (
		team    = "01935000-0001-7000-8000-0000000000bb"
		issue   = "01935001-0001-7000-8000-000000000000"
		session = "01935002-0001-7000-8000-000000000000"
		at      = `"createdAt":"2026-01-01T00:00:00.000Z"`
	)
	w := newLineImport(t)
	for _, line := range [][2]string{
		{"team", fmt.Sprintf(importedTeam, team, "ENG")},
		{"issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")},
		{"session", `{"id":"` + session + `","issueId":"` + issue + `","agentId":"a","provider":"p","actorId":"x","actorType":"user","status":"created","updatedAt":"2026-01-01T00:00:00.000Z",` + at + `}`},
	} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ kind, data, older, newer string }{
		{"access_grant", `{"id":%q,"issueId":"` + issue + `","actorId":"ann","actorType":"user",` + at + `}`, "01935001-0000-7fff-8000-000000000000", "01935001-0001-7001-8000-000000000000"},
		{"activity", `{"id":%q,"sessionId":"` + session + `","type":"action","message":"M",` + at + `}`, "01935002-0000-7fff-8000-000000000000", "01935002-0001-7001-8000-000000000000"},
	} {
		wantLineFault(t, w.line(row.kind, fmt.Sprintf(row.data, row.older)), "data.id must be newer")
		if err := w.line(row.kind, fmt.Sprintf(row.data, row.newer)); err != nil {
			t.Errorf("%s: %v", row.kind, err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.verify()
}
