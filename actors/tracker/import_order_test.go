package tracker

import (
	"fmt"
	"testing"
)

// An export has most records in the order of their ids. One that is older than the record which it belongs to
// would come first in the export of the workspace, which no import could take.
func TestImport_RefusesRecordsOlderThanTheirOwner(t *testing.T) {
	t.Parallel()
	const (
		team    = "01935000-0001-7000-8000-0000000000bb"
		issue   = "01935001-0001-7000-8000-000000000000"
		owner   = "01935002-0001-7000-8000-000000000000" // a session, a ticket and a webhook
		at      = `"createdAt":"2026-01-01T00:00:00.000Z"`
		made    = `"updatedAt":"2026-01-01T00:00:00.000Z",` + at
		ofIssue = `{"id":%q,"issueId":"` + issue + `",`
		session = `"agentId":"a","provider":"p","actorId":"x","actorType":"user",` + made
		usage   = `"agentId":"a","at":"2026-01-01T00:00:00.000Z"}`

		beforeIssue, behindIssue = "01935001-0000-7fff-8000-000000000000", "01935001-0001-7001-8000-000000000000"
		beforeOwner, behindOwner = "01935002-0000-7fff-8000-000000000000", "01935002-0001-7001-8000-000000000000"
	)
	picture := fmt.Sprintf(`"name":"a.png","contentType":"image/png","size":9,"sha256":"%x","contentBase64":"iVBORw0KGgox",`, sumOf([]byte("\x89PNG\r\n\x1a\n1")))
	w := newLineImport(t)
	for _, line := range [][2]string{
		{"team", fmt.Sprintf(importedTeam, team, "ENG")},
		{"issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")},
		{"session", fmt.Sprintf(ofIssue, owner) + `"status":"created",` + session + `}`},
		{"ticket", `{"id":"` + owner + `","source":"api","subject":"S","from":"F","status":"open","lastMessageAt":"2026-01-01T00:00:00.000Z",` + made + `}`},
		{"webhook_subscription", `{"id":"` + owner + `","url":"https://example.com/h","events":["*"],"isActive":true,` + made + `}`},
	} {
		if err := w.line(line[0], line[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ kind, data, older, newer string }{
		{"access_grant", ofIssue + `"actorId":"ann","actorType":"user",` + at + `}`, beforeIssue, behindIssue},
		{"attachment", ofIssue + picture + at + `}`, beforeIssue, behindIssue},
		{"comment", ofIssue + `"authorId":"ann","authorType":"user","body":"B",` + made + `}`, beforeIssue, behindIssue},
		{"history", ofIssue + `"field":"title","from":"O","to":"T","actorId":"ann","actorType":"user",` + at + `}`, beforeIssue, behindIssue},
		{"session", ofIssue + `"status":"created",` + session + `}`, beforeIssue, behindIssue},
		{"session", ofIssue + `"status":"completed",` + session + `}`, beforeIssue, "01935001-0001-7002-8000-000000000000"},
		{"usage", ofIssue + `"sessionId":"` + issue + `",` + usage, beforeIssue, behindIssue},
		{"activity", `{"id":%q,"sessionId":"` + owner + `","type":"action","message":"M",` + at + `}`, beforeOwner, behindOwner},
		{"usage", ofIssue + `"sessionId":"` + owner + `",` + usage, beforeOwner, behindOwner},
		{"draft", ofIssue + `"entityType":"issue","kind":"comment","status":"pending","createdById":"a","payload":{"body":"B"},"sessionId":"` + owner + `",` + made + `}`, beforeOwner, behindOwner},
		{"ticket_message", `{"id":%q,"ticketId":"` + owner + `","direction":"inbound","authorId":"x","authorType":"system","body":"B",` + at + `}`, beforeOwner, behindOwner},
		{"webhook_delivery", `{"id":%q,"subscriptionId":"` + owner + `","eventId":"` + owner + `","eventType":"issue.created","status":"failed",` + at + `}`, beforeOwner, behindOwner},
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

// Ended sessions and usage may be of an issue that was deleted. Behind them no line makes the issue: they would be
// those of a deleted issue here, and of one that is there in an import of this workspace's export.
func TestImport_TakesNoIssueBehindWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	const (
		team    = "01935000-0001-7000-8000-0000000000bb"
		session = `{"id":"01935002-0001-7000-8000-000000000000","issueId":"01935001-%04x-7000-8000-000000000000","agentId":"a","provider":"p","actorId":"x","actorType":"user","status":"failed",` +
			`"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`
		usage = `{"id":"01935002-0002-7000-8000-000000000000","issueId":"01935001-%04x-7000-8000-000000000000","sessionId":"01935001-0001-7000-8000-000000000000","agentId":"a","at":"2026-01-01T00:00:00.000Z"}`
	)
	w := newLineImport(t)
	take := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	take("team", fmt.Sprintf(importedTeam, team, "ENG"))
	take("session", fmt.Sprintf(session, 2))
	wantLineFault(t, w.line("issue", fmt.Sprintf(importedIssue, 2, team, 2, "ENG-2")), "before their sessions and usage")
	take("issue", fmt.Sprintf(importedIssue, 3, team, 3, "ENG-3"))
	take("usage", fmt.Sprintf(usage, 5))
	wantLineFault(t, w.line("issue", fmt.Sprintf(importedIssue, 5, team, 5, "ENG-5")), "before their sessions and usage")
	take("issue", fmt.Sprintf(importedIssue, 6, team, 6, "ENG-6"))
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.verify()
}
