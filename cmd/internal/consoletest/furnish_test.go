package consoletest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// furnished is a workspace with something on every page of the console.
type furnished struct {
	*service
	issue, cycle, agent, session string // ids
}

const longDescription = `Customers in **three time zones** see *another day* than the one they chose.

- The calendar sends local midnight.
- The service stores UTC and drops the offset.

` + "```go\nt, err := time.ParseInLocation(time.DateOnly, day, zone)\n```" + `

| zone | chosen | stored |
|---|---|---|
| Auckland | 3 May | 2 May |
| Lima | 3 May | 3 May |

<script>document.title = "not sanitized"</script><img src="x" onerror="document.title = 'not sanitized'">
`

// furnish fills a workspace over the API.
func furnish(ctx context.Context, t testing.TB, s *service) *furnished {
	t.Helper()
	f := &furnished{service: s}
	add := func(path string, body object) string {
		t.Helper()
		return s.send(ctx, "POST", path, body)["id"].(string)
	}

	s.member(ctx, "Ada", "member", "write")
	ada := f.memberID(ctx, "Ada")
	s.member(ctx, "Ben", "guest", "read")
	bug := add("/labels", object{"name": "bug", "color": "#c0392b"})
	api := add("/labels", object{"name": "api", "color": "#2266cc", "description": "What other programs see"})
	project := add("/projects", object{"name": "Calendar", "description": "Dates that are right everywhere."})
	add("/teams", object{"name": "Fleet", "key": "FLT"})
	now := time.Now().UTC()
	f.cycle = add("/cycles", object{"name": "Cycle 1", "startsAt": now.AddDate(0, 0, -7).Format(time.RFC3339), "endsAt": now.AddDate(0, 0, 7).Format(time.RFC3339)})
	f.issue = add("/issues", object{
		"title": "Dates shift by a day", "description": longDescription, "status": "in_progress", "priority": "urgent", "labelIds": []string{bug, api},
		"assigneeId": ada, "projectId": project, "cycleId": f.cycle, "estimate": 5, "repo": "acme/site",
	})
	child := add("/issues", object{"title": "Store the offset", "parentId": f.issue, "status": "todo", "estimate": 2, "cycleId": f.cycle, "priority": "high"})
	other := add("/issues", object{"title": "Migrate old rows", "parentId": f.issue, "status": "backlog", "priority": "medium"})
	f.send(ctx, "PUT", "/issues/"+child+"/relations/blocks/"+other, nil)
	f.send(ctx, "PUT", "/issues/"+f.issue+"/relations/relates/"+other, nil)
	for n, status := range []string{"done", "done", "canceled", "todo", "backlog", "triage", "triage"} {
		add("/issues", object{"title": fmt.Sprintf("Chore %d", n+1), "status": status, "priority": []string{"low", "medium", "high"}[n%3], "cycleId": f.cycle, "estimate": n, "labelIds": []string{api}})
	}
	comment := add("/issues/"+f.issue+"/comments", object{"body": "I can repeat it with `TZ=Pacific/Auckland`."})
	add("/issues/"+f.issue+"/comments", object{"body": "So can I.", "parentId": comment})
	add("/capture", object{"url": "https://acme.example/calendar", "title": "The calendar's page", "pageText": "May", "screenshot": object{"contentBase64": onePixel}})

	f.furnishAgents(ctx)
	// A receiver that refuses has deliveries to look at.
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(refusing.Close)
	hook := add("/webhook-subscriptions", object{"url": refusing.URL + "/hook", "description": "A receiver that refuses", "events": []string{"issue.*"}})
	f.send(ctx, "POST", "/webhook-subscriptions/"+hook+"/test", nil)
	add("/oauth-clients", object{"name": "Reports", "permissions": "read"})
	f.send(ctx, "POST", "/scim/connections", object{"scopes": []string{"scim.users.read", "scim.users.write"}})
	f.send(ctx, "PUT", "/inbound-secrets/helpdesk1", object{"secret": "a-secret-of-helpdesk1"})
	f.send(ctx, "PUT", "/inbound-routes/vcs1/acme/site", nil)
	add("/support-channels", object{"name": "Mail", "type": "email"})
	return f
}

// onePixel is the smallest PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// furnishAgents makes an agent with sessions in every status, of which f.session has all that a session can have.
func (f *furnished) furnishAgents(ctx context.Context) {
	f.t.Helper()
	f.agent = f.send(ctx, "POST", "/agents", object{"name": "Builder", "provider": "example", "isDefault": true, "maxConcurrentSessions": 10})["id"].(string)
	token := f.send(ctx, "POST", "/tokens", object{"name": "builder", "actorType": "agent", "agentId": f.agent, "permissions": "sessions:write"})["token"].(string)
	f.send(ctx, "PUT", "/budgets/workspace", object{"period": "month", "costMicros": 20_000_000, "tokens": 5_000_000})
	f.send(ctx, "PUT", "/agent/limits/repo:acme%2Fsite", object{"limit": 1})
	sessions := "/agent/sessions/"
	dispatch := func(issue string, body object) string {
		f.t.Helper()
		return f.send(ctx, "POST", "/issues/"+issue+"/dispatch", body)["id"].(string)
	}
	claim := func() (session, lane string) {
		f.t.Helper()
		got := f.sendAs(ctx, token, "POST", f.path+sessions+"claim", object{"leaseSeconds": 3600})["sessions"].([]any)
		if len(got) != 1 {
			f.t.Fatalf("%d sessions were claimed", len(got))
		}
		one := got[0].(object)
		return one["session"].(object)["id"].(string), one["laneToken"].(string)
	}
	as := func(lane, session, act string, body object) {
		f.t.Helper()
		method := "POST"
		if act == "checkpoint" {
			method = "PUT"
		}
		f.sendAs(ctx, lane, method, f.path+sessions+session+"/"+act, body)
	}
	titled := func(title string) string {
		f.t.Helper()
		return f.service.issue(ctx, title, object{"status": "todo"})["id"].(string)
	}

	dispatch(titled("Say how dates are stored"), object{})
	done, lane := claim()
	as(lane, done, "report", object{"status": "completed", "result": "Wrote **two pages**.", "usage": object{"inputTokens": 9000, "outputTokens": 1200, "costMicros": 40_000}})
	dispatch(titled("Drop the old column"), object{"retry": object{"maxAttempts": 1}})
	failed, lane := claim()
	as(lane, failed, "report", object{"status": "failed", "result": "There are still readers.", "failureReason": "still_used"})
	dispatch(titled("Ask about the default zone"), object{})
	asks, lane := claim()
	as(lane, asks, "log", object{"type": "thought", "message": "Two zones are possible."})
	as(lane, asks, "log", object{"type": "elicitation", "message": "Is the default zone *Auckland* or *Lima*?"})
	as(lane, asks, "report", object{"status": "waiting"})

	schema := object{"type": "object", "required": []string{"rows"}, "properties": object{"rows": object{"type": "integer"}}}
	f.session = dispatch(f.issue, object{"instructions": "Be careful.", "maxDuration": 60, "resultSchema": schema, "concurrencyKeys": []string{"repo:acme/site"}})
	_, lane = claim()
	as(lane, f.session, "log", object{"type": "thought", "message": "To do: Dates shift by a day.", "plan": []object{
		{"id": "1", "title": "Repeat the fault", "status": "completed"}, {"id": "2", "title": "Store the offset", "status": "in_progress"}, {"id": "3", "title": "Migrate old rows", "status": "pending"},
	}})
	as(lane, f.session, "log", object{"type": "action", "message": "go test ./calendar", "durationMs": 4200, "payload": object{"exit": 1}, "usage": object{"inputTokens": 41_000, "outputTokens": 2_600, "costMicros": 310_000}})
	as(lane, f.session, "checkpoint", object{"steps": 1})
	as(lane, f.session, "children", object{"title": "Look at the rows of May"})
	f.sendAs(ctx, lane, "POST", f.path+"/drafts", object{"kind": "comment", "sessionId": f.session, "issueId": f.issue, "payload": object{"body": "The fault is in `ParseDay`."}})
	f.sendAs(ctx, lane, "POST", f.path+"/drafts", object{"kind": "issue_update", "sessionId": f.session, "issueId": f.issue, "payload": object{"priority": "high", "estimate": 8}})
	dispatch(titled("Wait for the key"), object{"concurrencyKeys": []string{"repo:acme/site"}})
	f.send(ctx, "PUT", "/holds/provider:slow", object{"reason": "Its limit is reached."})
}

// memberID returns the id of a member by name.
func (s *service) memberID(ctx context.Context, name string) string {
	s.t.Helper()
	for _, m := range s.send(ctx, "GET", "/members", nil)["members"].([]any) {
		if member := m.(object); strings.EqualFold(fmt.Sprint(member["name"]), name) {
			return member["userId"].(string)
		}
	}
	s.t.Fatalf("no member %s", name)
	return ""
}
