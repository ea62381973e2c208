package systemtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

func (f *filled) do(method, path string, body any, want int, headers ...string) (out object) {
	f.Helper()
	answer, err := f.c.Do(f.Context(), method, "/workspaces/"+f.id+path, body, headers...)
	if err != nil || answer.Status != want {
		f.Fatalf("%s %s: %v, %d %s; want %d", method, path, err, answer.Status, answer.Body, want)
	}
	if len(answer.Body) > 0 {
		out = decoded(f.T, answer)
	}
	return out
}

// make is do for what is made, and gives its id.
func (f *filled) make(path string, body object) string {
	f.Helper()
	made := f.do("POST", path, body, http.StatusCreated)
	for _, name := range []string{"id", "userId"} {
		if id, ok := made[name].(string); ok {
			return id
		}
	}
	f.Fatalf("POST %s: no id in %v", path, made)
	return ""
}

// fillWorkspace makes a workspace and in it everything there can be.
func fillWorkspace(t *testing.T, base, slug string) *filled {
	t.Helper()
	home, err := NewClient(base, "", 4).Onboard(t.Context(), "Filled "+slug, slug)
	if err != nil {
		t.Fatal(err)
	}
	limits := object{"limits": object{"issues": 1_000_000}}
	if err := NewClient(base, rootToken, 1).Decode(t.Context(), "PUT", "/cluster/workspaces/"+home.Workspace.ID+"/limits", limits, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	f := &filled{T: t, c: NewClient(base, home.Token.Token, 4), id: home.Workspace.ID, slug: slug, tokens: []string{home.Token.Token}, marker: "xx" + slug + "xx"}
	f.importNothing()
	named := object{"name": f.marker}

	member := f.make("/members", object{"name": f.marker, "email": slug + "@example.com", "role": "member"})
	guest := f.make("/members", object{"name": f.marker, "role": "guest"})
	removed := f.make("/members", named)
	for _, token := range []object{{"userId": member}, {"userId": guest}, {"agentId": "bot-" + slug, "actorType": "agent"}, {"userId": removed}} {
		token["name"] = f.marker
		f.tokens = append(f.tokens, f.do("POST", "/tokens", token, http.StatusCreated)["token"].(string))
	}
	f.do("DELETE", "/members/"+removed, nil, http.StatusNoContent)
	f.do("DELETE", "/tokens/"+f.make("/tokens", object{"name": "Gone"}), nil, http.StatusNoContent)

	template := f.make("/templates", object{"name": f.marker, "status": "todo", "description": f.marker})
	team := f.make("/teams", object{"name": f.marker, "key": "OWN"})
	private := f.make("/teams", object{"name": f.marker, "key": "PRIV", "isPublic": false})
	f.do("PUT", "/teams/"+private+"/members/"+member, nil, http.StatusOK)
	f.do("PUT", "/teams/"+private+"/members/bot-"+slug, nil, http.StatusOK)
	f.do("PATCH", "/teams/"+team, object{"subIssueAutoClose": true, "parentAutoClose": true, "triageAssigneeId": member, "defaultTemplateId": template}, http.StatusOK)
	f.do("PATCH", "", object{"defaultTeamId": team, "ssoEnforced": true}, http.StatusOK)
	retired := f.make("/teams", object{"name": f.marker, "key": "OLD"})
	f.do("DELETE", "/issues/"+f.make("/issues", object{"title": "Gone", "teamId": retired}), nil, http.StatusNoContent)
	f.do("DELETE", "/teams/"+retired, nil, http.StatusNoContent)

	old := f.make("/issues", object{"title": f.marker, "status": "done"})
	f.do("PUT", "/retention", object{"closedIssuesDays": 0}, http.StatusOK)
	testkit.Await(f.Context(), f, "an archived issue", func() bool {
		return f.do("GET", "/issues/"+old, nil, http.StatusOK)["archivedAt"] != nil
	})
	f.do("PUT", "/retention", object{"endedSessionsDays": 1000}, http.StatusOK)

	label, project := f.make("/labels", named), f.make("/projects", named)
	cycle := f.make("/cycles", object{"name": f.marker, "startsAt": "2026-01-01T00:00:00Z"})
	parent := f.make("/issues", object{"title": f.marker + " parent"})
	issue := f.make("/issues", object{
		"title": f.marker, "description": f.marker + " described", "externalRef": f.marker, "parentId": parent, "labelIds": []string{label}, "projectId": project,
		"cycleId": cycle, "assigneeId": member, "estimate": 3, "isDraft": true, "snoozedUntil": "2099-01-01T00:00:00Z", "repo": f.marker,
	})
	f.do("PATCH", "/issues/"+issue, object{"isDraft": false, "status": "todo", "title": f.marker + " changed"}, http.StatusOK)
	f.do("PATCH", "/issues/"+issue, object{"teamId": private}, http.StatusOK)
	f.do("POST", "/issues/"+issue+"/assign", object{"assigneeId": "bot-" + slug}, http.StatusOK)
	comment := f.make("/issues/"+issue+"/comments", object{"body": f.marker})
	f.make("/issues/"+issue+"/comments", object{"body": f.marker, "parentId": comment})
	for actor, kind := range map[string]string{member: "user", "bot-" + slug: "agent", private: "team"} {
		f.do("PUT", "/issues/"+issue+"/permissions", object{"actorId": actor, "actorType": kind}, http.StatusOK)
	}
	f.do("PUT", "/issues/"+parent+"/relations/blocks/"+issue, nil, http.StatusOK)
	f.do("POST", "/issues/"+issue+"/share", nil, http.StatusCreated)
	f.share = f.do("POST", "/issues/"+issue+"/share", object{"expiresAt": "2099-01-01T00:00:00Z"}, http.StatusCreated)["token"].(string)
	for n, size := range []int{100, 300 << 10, 100} {
		capture := captureBody(picture(size))
		capture["title"], capture["pageText"], capture["includeFullText"] = f.marker, strings.Repeat(f.marker+" ", 10), true
		captured := f.make("/capture", capture)
		if n == 2 { // of three captures two are left
			f.do("DELETE", "/issues/"+captured, nil, http.StatusNoContent)
			continue
		}
		f.attachment = f.do("GET", "/issues/"+captured+"/attachments", nil, http.StatusOK)["attachments"].([]any)[0].(object)["id"].(string)
	}
	f.connect()
	f.fillSessions(issue)
	f.make("/issues", object{"title": f.marker, "isDraft": true})
	f.do("POST", "/issues", object{"title": f.marker}, http.StatusCreated, "Idempotency-Key", f.marker)
	f.do("POST", "/tokens", object{"name": f.marker}, http.StatusCreated, "Idempotency-Key", f.marker+"2")

	// The index for search has followed (Decision 20), and will have more to follow.
	for deadline := time.Now().Add(20 * time.Second); len(f.do("GET", "/issues/"+parent+"/similar", nil, http.StatusOK)["similar"].([]any)) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the index never followed")
		}
	}

	// More children than are closed at once: timers are left.
	many := f.make("/issues", object{"title": "Many"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 70 {
				if err := f.c.Decode(f.Context(), "POST", "/workspaces/"+f.id+"/issues", object{"title": "Child", "parentId": many}, http.StatusCreated, nil); err != nil {
					f.Error(err)
				}
			}
		})
	}
	all.Wait()
	f.do("PATCH", "/issues/"+many, object{"status": "done"}, http.StatusOK)
	return f
}

// importNothing begins an import and ends it: verify proves less of a workspace while one is under
// way, and members have no access.
func (f *filled) importNothing() {
	f.Helper()
	head := f.do("GET", "", nil, http.StatusOK)
	head["defaultTeamId"] = nil // there will be no line of it
	first := object{"n": 0, "type": "workspace", "version": 1, "data": head}
	text, err := json.Marshal(first)
	if err != nil {
		f.Fatal(err)
	}
	f.do("POST", "/import", first, http.StatusOK)
	sum := sha256.Sum256(append(text, '\n'))
	f.do("POST", "/import", object{"type": "end", "counts": object{"workspace": 1}, "sha256": hex.EncodeToString(sum[:])}, http.StatusOK)
}

// connect makes what ties a workspace to the world outside: webhooks of which one
// takes, one refuses and one never answers, what comes in, and who may come in.
func (f *filled) connect() {
	f.Helper()
	hook := func(answer func(net.Conn)) string {
		return f.make("/webhook-subscriptions", object{"url": speaks(f.T, answer) + "/" + f.marker, "description": f.marker})
	}
	says := func(status string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n") }
	}
	hook(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	fails, takes := hook(says("500 No")), hook(says("200 OK"))
	f.webhook = takes
	f.do("POST", "/webhook-subscriptions/"+takes+"/rotate-secret", nil, http.StatusOK)
	f.do("DELETE", "/webhook-subscriptions/"+hook(says("200 OK")), nil, http.StatusNoContent)

	f.make("/support-channels", object{"type": "chatapp1", "name": f.marker, "config": object{"channelId": f.marker, "botToken": f.marker + "-token"}})
	f.do("PUT", "/inbound-routes/vcs1/"+f.marker+"/pending", nil, http.StatusOK)
	f.do("PUT", "/inbound-routes/vcs1/"+f.marker+"/"+f.marker, nil, http.StatusOK)
	if err := NewClient(f.c.URL, rootToken, 1).Decode(f.Context(), "PUT", "/workspaces/"+f.id+"/inbound-routes/vcs1/"+f.marker+"/"+f.marker, nil, http.StatusOK, nil); err != nil {
		f.Fatal(err)
	}
	secret := f.do("PUT", "/inbound-secrets/chatapp1", object{}, http.StatusOK)["secret"].(string)
	call := object{"message": object{"from": f.marker, "subject": f.marker, "text": f.marker, "threadId": f.marker}}
	body, err := json.Marshal(call)
	if err != nil {
		f.Fatal(err)
	}
	for i, delivery := range []string{"one", "two"} {
		at := time.Now().Add(time.Duration(-i) * time.Minute) // the same bytes would be a repeat
		var made inboundAnswer
		if err := f.c.Decode(f.Context(), "POST", "/webhooks/comms/"+f.id+"/chatapp1", call, http.StatusAccepted, &made, append(signComms(secret, at, body), "X-Tracker-Delivery", delivery)...); err != nil {
			f.Fatal(err)
		}
		if delivery == "one" {
			f.make("/tickets/"+made.TicketID+"/issue", object{})
		}
	}
	pull := f.make("/issues", object{"title": f.marker, "isDraft": true})
	f.do("PATCH", "/issues/"+pull, object{"branch": f.marker, "prUrl": "https://example.com/" + f.marker}, http.StatusOK)
	for _, entity := range tracker.RecordEntities() {
		f.make("/"+entity.Many, object{"name": f.marker})
	}

	w := identity{id: f.id}
	client := f.do("POST", "/oauth-clients", object{"name": f.marker}, http.StatusCreated)
	w.client.ClientID, w.client.ClientSecret = client["clientId"].(string), client["clientSecret"].(string)
	token, status, err := w.access(f.Context(), f.c)
	if err != nil || status != http.StatusOK {
		f.Fatalf("an access token: %d, %v", status, err)
	}
	scim := f.do("POST", "/scim/connections", object{"scopes": []string{"scim.users.write", "scim.groups.write"}}, http.StatusCreated)["token"].(string)
	f.tokens = append(f.tokens, token, scim)
	var user object
	provisioned := object{"userName": f.marker, "externalId": f.marker, "emails": []object{{"value": f.marker + "@example.com"}}}
	as := []string{"Authorization", "Bearer " + scim}
	if err := f.c.Decode(f.Context(), "POST", "/scim/v2/"+f.id+"/Users", provisioned, http.StatusCreated, &user, as...); err != nil {
		f.Fatal(err)
	}
	group := object{"displayName": f.marker + " group", "externalId": f.marker, "members": []object{{"value": user["id"]}}}
	if err := f.c.Decode(f.Context(), "POST", "/scim/v2/"+f.id+"/Groups", group, http.StatusCreated, nil, as...); err != nil {
		f.Fatal(err)
	}

	for id, status := range map[string]string{takes: "succeeded", fails: "pending"} {
		testkit.Await(f.Context(), f.T, "a delivery that "+status, func() bool {
			first, _ := f.do("GET", "/webhook-subscriptions/"+id+"/deliveries?limit=100", nil, http.StatusOK)["deliveries"].([]any)
			return len(first) > 0 && slices.ContainsFunc(first, func(d any) bool { return d.(object)["status"] == status && d.(object)["attempts"] != 0.0 })
		})
	}
}

// fillSessions makes agents, and of an issue sessions that are in every way there is.
func (f *filled) fillSessions(issue string) {
	f.Helper()
	agent := f.make("/agents", object{"name": f.marker, "provider": f.marker, "model": f.marker, "isDefault": true, "maxConcurrentSessions": 3})
	f.do("DELETE", "/agents/"+f.make("/agents", object{"name": f.marker}), nil, http.StatusNoContent)
	f.do("PUT", "/agent/limits/"+f.marker, object{"limit": 2}, http.StatusOK)
	f.do("PUT", "/holds/agent:held-"+f.marker, object{"reason": f.marker, "until": "2099-01-01T00:00:00Z"}, http.StatusOK)
	f.do("PUT", "/budgets/agent:spent-"+f.marker, object{"tokens": 0, "period": "month"}, http.StatusOK)
	f.make("/issues/"+f.make("/issues", object{"title": f.marker})+"/dispatch", object{"agentId": "spent-" + f.marker})
	spent := f.do("POST", "/agent/sessions/claim", object{"agentId": "spent-" + f.marker}, http.StatusOK)["sessions"].([]any)[0].(object)
	f.tokens = append(f.tokens, spent["laneToken"].(string))
	f.do("POST", "/agent/sessions/"+spent["session"].(object)["id"].(string)+"/heartbeat", object{"usage": object{"inputTokens": 1}}, http.StatusOK)
	f.make("/issues/"+issue+"/dispatch", object{"agentId": "held-" + f.marker})
	f.make("/issues/"+issue+"/dispatch", object{"agentId": "ready-" + f.marker, "whenReady": true})
	f.make("/issues/"+issue+"/dispatch", object{"agentId": "later-" + f.marker, "notBefore": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)})
	for range 4 { // two are claimed, one is canceled and one stays in the queue
		f.make("/issues/"+f.make("/issues", object{"title": f.marker})+"/dispatch", object{"instructions": f.marker, "maxDuration": 60, "resultSchema": "lane", "concurrencyKeys": []string{f.marker}})
	}
	f.make("/issues/"+issue+"/dispatch", object{"agentId": f.marker, "preflight": true})
	f.fillAttempts()
	claimed := f.do("POST", "/agent/sessions/claim", object{"agentId": agent, "limit": 2, "leaseSeconds": 3600}, http.StatusOK)["sessions"].([]any)
	if len(claimed) != 2 {
		f.Fatalf("claimed %d sessions", len(claimed))
	}
	for n, c := range claimed {
		f.tokens = append(f.tokens, c.(object)["laneToken"].(string))
		at := "/agent/sessions/" + c.(object)["session"].(object)["id"].(string)
		f.do("POST", at+"/log", object{"message": f.marker, "payload": object{"text": f.marker}, "plan": []object{{"id": "1", "title": f.marker, "status": "pending"}}, "usage": object{"inputTokens": 1, "model": f.marker}}, http.StatusCreated)
		f.do("PUT", at+"/checkpoint", object{"at": f.marker}, http.StatusNoContent)
		if n == 0 {
			f.do("POST", at+"/children", object{"title": f.marker}, http.StatusCreated)
			continue
		}
		f.do("POST", at+"/report", object{"status": "waiting", "result": f.marker}, http.StatusOK)
	}
	queued := f.do("GET", "/agent/sessions?status=created&agentId="+agent, nil, http.StatusOK)["sessions"].([]any)
	f.do("POST", "/agent/sessions/"+queued[0].(object)["id"].(string)+"/cancel", object{"reason": f.marker}, http.StatusOK)
	line := f.do("POST", "/agent/dispatch-batch", object{"items": []object{
		{"issueId": issue, "agentId": f.marker, "instructions": f.marker},
		{"issueId": issue, "agentId": f.marker, "queuedAfter": issue, "instructions": f.marker},
	}}, http.StatusOK)["results"].([]any)
	if behind := line[1].(object); behind["status"] != "waiting" {
		f.Fatalf("a session in line is %v", behind)
	}
	registered := f.do("POST", "/agent/sessions/register", object{"issueId": issue, "provider": f.marker, "providerSessionId": f.marker, "status": "running"}, http.StatusCreated)
	f.tokens = append(f.tokens, registered["laneToken"].(string))
	f.fillDrafts(issue, registered["session"].(object)["id"].(string))
}

// fillAttempts makes a session with two attempts, which is a dead letter.
func (f *filled) fillAttempts() {
	f.Helper()
	policy := object{"maxAttempts": 2, "on": []string{"failed"}}
	f.make("/issues/"+f.make("/issues", object{"title": f.marker})+"/dispatch", object{"agentId": f.marker + "-2", "retry": policy})
	for range 2 {
		claimed := f.do("POST", "/agent/sessions/claim", object{"agentId": f.marker + "-2"}, http.StatusOK)["sessions"].([]any)[0].(object)
		report := object{"status": "failed", "failureReason": "filled", "result": f.marker}
		f.do("POST", "/agent/sessions/"+claimed["session"].(object)["id"].(string)+"/report", report, http.StatusOK)
	}
	f.make("/issues/"+f.make("/issues", object{"title": f.marker})+"/dispatch", object{"agentId": f.marker + "-3"})
	waits := f.do("POST", "/agent/sessions/claim", object{"agentId": f.marker + "-3"}, http.StatusOK)["sessions"].([]any)[0].(object)
	wait := object{"status": "waiting", "waitFor": object{"all": []object{{"pr": "merged"}, {"after": "2099-01-01T00:00:00Z"}}}}
	f.do("POST", "/agent/sessions/"+waits["session"].(object)["id"].(string)+"/report", wait, http.StatusOK)
	if dead := f.do("GET", "/agent/sessions?deadLettered=true", nil, http.StatusOK)["sessions"].([]any); len(dead) != 1 {
		f.Fatalf("the dead letters are %v", dead)
	}
}

// fillDrafts makes drafts of every kind, on an issue and on none, and leaves some in
// every status.
func (f *filled) fillDrafts(issue, session string) {
	f.Helper()
	for _, decision := range []string{"", "publish", "discard"} {
		for _, draft := range []object{
			{"kind": "comment", "sessionId": session, "payload": object{"body": f.marker, "extra": f.marker}},
			{"kind": "issue_update", "issueId": issue, "payload": object{"description": f.marker}},
			{"kind": "issue_create", "payload": object{"title": f.marker}},
			{"kind": "issue_create", "entityType": f.marker, "entityId": f.marker, "issueId": issue, "payload": object{"title": f.marker}},
		} {
			if id := f.make("/drafts", draft); decision != "" {
				f.do("POST", "/drafts/"+id+"/"+decision, object{"note": f.marker}, http.StatusOK)
			}
		}
	}
}
