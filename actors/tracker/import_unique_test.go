package tracker

import (
	"fmt"
	"testing"
)

// An agent has the lease of one session of an issue, also in a file.
func TestImport_LeasesOneSessionOfAnIssue(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const team = "01935000-0001-7000-8000-0000000000bb"
	take := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	session := func(n, issue int, agent string) string {
		return fmt.Sprintf(`{"id":"01935002-%04x-7000-8000-000000000000","issueId":"01935001-%04x-7000-8000-000000000000","agentId":%q,"actorId":"ann","actorType":"user","provider":"p","status":"running","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, n, issue, agent)
	}
	state := func(n int) string {
		return fmt.Sprintf(`{"sessionId":"01935002-%04x-7000-8000-000000000000","startedAt":"2026-01-01T00:00:00.000Z","lease":{"holderId":"ann","holderType":"user","seconds":60,"expiresAt":"2026-12-01T00:01:00.000Z","checkAt":"2026-12-01T00:01:00.000Z"}}`, n)
	}
	take("team", fmt.Sprintf(importedTeam, team, "ENG"))
	take("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1"))
	take("issue", fmt.Sprintf(importedIssue, 2, team, 2, "ENG-2"))
	for n, row := range []struct {
		issue int
		agent string
	}{{1, "a"}, {1, "a"}, {1, "b"}, {2, "a"}} {
		take("session", session(n, row.issue, row.agent))
		if n == 1 {
			wantLineFault(t, w.line("session_state", state(n)), "data.lease: The agent has a lease of another session of the issue, 01935002-0000-")
			continue // as a registered session has none
		}
		take("session_state", state(n))
	}
	w.verify()
}

func TestImport_TakesAUserNameOnce(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	user := func(id, name string) error {
		return w.line("scim_user", fmt.Sprintf(`{"id":%q,"userName":%q,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, id, name))
	}
	if err := user("x", "ann"); err != nil {
		t.Fatal(err)
	}
	wantLineFault(t, user("y", "ANN"), "data.userName: Another user has this userName.")
	if err := user("y", "bob"); err != nil {
		t.Error(err)
	}
	w.verify()
}
