package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// matrixWorld is a workspace with its people, and an issue of each kind.
type matrixWorld struct {
	admin     *Client
	workspace string
	ids       map[string]string // of roles and teams
	callers   []matrixCaller
	fixtures  map[string]fixture
	mail      string // what the calls of its source mail are signed with
	tickets   atomic.Int64
}

// fixture is what an issue is called: {id} and so on, in braces, to their texts.
type fixture map[string]string

func (f fixture) fill(s string) string {
	for name, text := range f {
		s = strings.ReplaceAll(s, name, text)
	}
	return s
}

func (f fixture) fillAll(v any) any {
	switch v := v.(type) {
	case string:
		return f.fill(v)
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.fill(v[i])
		}
		return out
	case []object:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.fillAll(v[i])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.fillAll(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = f.fillAll(v[name])
		}
		return out
	}
	return v
}

func (w *matrixWorld) do(t *testing.T, method, path string, body any, want int) (out map[string]any) {
	t.Helper()
	into := any(&out)
	if want == http.StatusNoContent {
		into = nil
	}
	if err := w.admin.Decode(t.Context(), method, "/workspaces/"+w.workspace+path, body, want, into); err != nil {
		t.Fatal(err)
	}
	return out
}

func newMatrixWorld(t *testing.T) *matrixWorld {
	n := inProcess(t, nil)
	base := "http://" + n.HTTPAddr()
	anybody := NewClient(base, "", 4)
	home, err := anybody.Onboard(t.Context(), "Matrix", "matrix")
	if err != nil {
		t.Fatal(err)
	}
	away, err := anybody.Onboard(t.Context(), "Away", "away")
	if err != nil {
		t.Fatal(err)
	}
	w := &matrixWorld{admin: NewClient(base, home.Token.Token, 4), workspace: home.Workspace.ID, fixtures: map[string]fixture{}}
	owner := w.do(t, "GET", "", nil, 200)["ownerId"].(string)
	w.ids = map[string]string{"owner": owner, "agent": "bot", "somebody": "somebody"}
	for _, role := range []string{"admin", "member", "guest"} {
		w.ids[role] = w.do(t, "POST", "/members", map[string]any{"name": role, "role": role}, 201)["userId"].(string)
	}
	provisioner := w.do(t, "POST", "/scim/connections", map[string]any{"scopes": []string{"scim.users.read", "scim.groups.read"}}, 201)
	for _, role := range matrixRoles {
		for _, permission := range matrixPermissions {
			c := matrixCaller{NewClient(base, "", 4), role, permission}
			token := map[string]any{"name": role, "permissions": permission}
			switch role {
			case "nobody":
			case "operator":
				c.Token = rootToken
			case "stranger":
				c.Token = away.Token.Token
			case "provisioner":
				c.Token = provisioner["token"].(string)
			case "client":
				made := w.do(t, "POST", "/oauth-clients", token, 201)
				id := identity{}
				id.client.ClientID, id.client.ClientSecret = made["clientId"].(string), made["clientSecret"].(string)
				if c.Token, _, err = id.access(t.Context(), w.admin); err != nil || c.Token == "" {
					t.Fatalf("no access token: %v", err)
				}
			case "agent":
				token["agentId"] = w.ids[role]
				c.Token = w.do(t, "POST", "/tokens", token, 201)["token"].(string)
			default:
				token["userId"] = w.ids[role]
				c.Token = w.do(t, "POST", "/tokens", token, 201)["token"].(string)
			}
			w.callers = append(w.callers, c)
			if role == "provisioner" || role == "operator" || role == "stranger" || role == "nobody" {
				break // they have one token or none
			}
		}
	}
	for name, team := range matrixTeams {
		id := w.do(t, "POST", "/teams", map[string]any{"name": name, "key": name, "isPublic": team.public}, 201)["id"].(string)
		w.ids[name] = id
		for _, role := range team.members {
			w.do(t, "PUT", "/teams/"+id+"/members/"+w.ids[role], nil, 200)
		}
	}
	w.mail = w.do(t, "PUT", "/inbound-secrets/mail", map[string]any{}, 200)["secret"].(string)
	for i, k := range issueKinds {
		w.fixtures[k.name] = w.fixture(t, k, fmt.Sprintf("kind%d", i), "triage")
	}
	for _, f := range w.fixtures {
		w.awaitSimilar(t, f["{loose}"], f["{id}"])
		w.awaitSimilar(t, f["{id}"], f["{loose}"])
	}
	return w
}

// awaitSimilar returns when the search index has followed so far that an issue is
// listed as similar to another, which takes a second at most (Decision 20).
func (w *matrixWorld) awaitSimilar(t *testing.T, id, other string) {
	t.Helper()
	for range 500 {
		answer, err := w.admin.Do(t.Context(), "GET", "/workspaces/"+w.workspace+"/issues/"+id+"/similar?limit=50", nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(answer.Body), other) {
			return
		}
		time.Sleep(10 * time.Millisecond) // it is another process's work, as far as a client can tell
	}
	t.Fatalf("issue %s is not similar to %s", other, id)
}

// fixture makes an issue of a kind. It lies between an open parent and an open
// child, and beside an open issue that is neither.
func (w *matrixWorld) fixture(t *testing.T, k issueKind, name, status string) fixture {
	t.Helper()
	create := func(body map[string]any) map[string]any { return w.do(t, "POST", "/issues", body, 201) }
	text := func(of map[string]any, field string) string { return of[field].(string) }
	public := w.ids["public"]
	word, hint := "vv"+name+"vv", "hh"+name+"hh"
	title := "zq" + name + "qz " + word
	parent := create(map[string]any{"title": "Parent", "teamId": public})
	capture := captureBody(picture(64))
	capture["title"], capture["teamId"] = title, w.ids[k.team]
	id := text(w.do(t, "POST", "/capture", capture, 201), "id")
	issue := w.do(t, "PATCH", "/issues/"+id, map[string]any{
		"description": hint, "parentId": text(parent, "id"), "status": status, "priority": "urgent", "externalRef": name,
		"projectId": name, "cycleId": name, "labelIds": []string{name}, "assigneeId": name,
	}, 200)
	child := create(map[string]any{"title": "Child", "teamId": public, "parentId": text(issue, "id")})
	loose := create(map[string]any{"title": hint, "teamId": public})
	moved := create(map[string]any{"title": "Moved", "teamId": public})
	comment := w.do(t, "POST", "/issues/"+id+"/comments", map[string]any{"body": "About " + title}, 201)
	attachments := w.do(t, "GET", "/issues/"+id+"/attachments", nil, 200)["attachments"].([]any)
	below := w.do(t, "POST", "/templates", map[string]any{"name": "Below", "parentId": id}, 201)
	w.do(t, "PUT", "/issues/"+id+"/relations/blocks/"+text(child, "id"), nil, 200)
	grantee := "bystander"
	for _, g := range k.grants {
		grantee = w.ids[g.role]
		w.do(t, "PUT", "/issues/"+text(issue, "id")+"/permissions", map[string]any{"actorId": grantee, "actorType": g.actorType}, 200)
	}
	share := w.do(t, "POST", "/issues/"+text(issue, "id")+"/share", nil, 201)
	ticket, unlinked := w.ticket(t), w.ticket(t)
	w.do(t, "PATCH", "/tickets/"+ticket, map[string]any{"issueId": id}, 200)
	// A session that can be claimed, and a registered session, which has a lane.
	queued := w.do(t, "POST", "/issues/"+id+"/dispatch", map[string]any{"agentId": name, "provider": name, "instructions": title}, 201)
	registered := w.do(t, "POST", "/agent/sessions/register", map[string]any{"issueId": id, "provider": "other", "providerSessionId": name, "status": "created"}, 201)
	session := text(registered["session"].(map[string]any), "id")
	w.do(t, "POST", "/agent/sessions/"+session+"/log", map[string]any{"message": title, "usage": map[string]any{"inputTokens": 1}}, 201)
	spawned := w.do(t, "POST", "/agent/sessions/"+session+"/children", map[string]any{"title": "Spawned"}, 201)
	w.do(t, "PATCH", "/issues/"+text(spawned["issue"].(map[string]any), "id"), map[string]any{"teamId": public, "projectId": nil, "cycleId": nil}, 200)
	draft := w.do(t, "POST", "/drafts", map[string]any{"kind": "comment", "sessionId": session, "payload": map[string]any{"body": "About " + title}}, 201)
	return fixture{
		"{workspace}": w.workspace, "{id}": text(issue, "id"), "{identifier}": text(issue, "identifier"), "{title}": title, "{name}": name, "{team}": w.ids[k.team],
		"{slug}": strings.ReplaceAll(title, " ", "-"), "{word}": word, "{hint}": hint, "{comment}": text(comment, "id"), "{below}": text(below, "id"), "{moved}": text(moved, "id"),
		"{attachment}": attachments[0].(map[string]any)["id"].(string),
		"{parent}":     text(parent, "id"), "{parentIdentifier}": text(parent, "identifier"), "{child}": text(child, "id"), "{childIdentifier}": text(child, "identifier"),
		"{loose}": text(loose, "id"), "{grantee}": grantee, "{share}": text(share, "token"),
		"{ticket}": ticket, "{unlinked}": unlinked,
		"{queued}": text(queued, "id"), "{session}": session, "{lane}": text(registered, "laneToken"),
		"{spawned}": text(spawned["session"].(map[string]any), "id"), "{draft}": text(draft, "id"),
	}
}

// ticket makes a ticket, as somebody who writes to the workspace.
func (w *matrixWorld) ticket(t *testing.T) string {
	t.Helper()
	var made inboundAnswer
	delivery := fmt.Sprint("ticket ", w.tickets.Add(1))
	body := map[string]any{"message": map[string]any{"from": "Ann", "subject": "Help", "text": "It fails."}, "nonce": delivery}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	headers := append(signComms(w.mail, time.Now(), text), "X-Tracker-Delivery", delivery)
	if err := w.admin.Decode(t.Context(), "POST", "/webhooks/comms/"+w.workspace+"/mail", body, http.StatusAccepted, &made, headers...); err != nil {
		t.Fatal(err)
	}
	return made.TicketID
}
