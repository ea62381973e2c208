package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/httpapi"
)

// An issueKind says where an issue lies and to whom it is granted. Teams are named
// by who is in them, grants by the roles of the caller.
type issueKind struct {
	name   string
	team   string
	grants []grantOf
}

type grantOf struct{ actorType, role string }

var issueKinds = []issueKind{
	{"open", "public", nil},
	{"restricted to somebody else", "public", []grantOf{{"user", "somebody"}}},
	{"restricted to users", "public", []grantOf{{"user", "member"}, {"user", "owner"}}},
	{"restricted to an agent", "public", []grantOf{{"agent", "agent"}}},
	{"restricted to the id of an agent as a user", "public", []grantOf{{"user", "agent"}, {"agent", "member"}}},
	{"restricted to a team", "public", []grantOf{{"team", "joined"}}},
	{"in a private team of others", "foreign", nil},
	{"in a private team of its own", "own", nil},
	{"granted in a private team of others", "foreign", []grantOf{{"user", "member"}, {"agent", "agent"}}},
	{"granted in a private team of its own", "own", []grantOf{{"user", "guest"}, {"user", "member"}}},
}

// matrixTeams are the roles that are members of each team; false says it is
// private. The owner makes the private ones and is in them for that.
var matrixTeams = map[string]struct {
	public  bool
	members []string
}{
	"public": {true, nil}, "joined": {true, []string{"guest", "agent"}},
	"foreign": {false, []string{"owner"}}, "own": {false, []string{"owner", "member", "guest", "agent"}},
}

var (
	matrixRoles       = []string{"owner", "admin", "member", "guest", "agent", "client", "provisioner", "operator", "stranger", "nobody"}
	matrixPermissions = []string{"read", "write", "admin", "issues:read", "issues:write", "sessions:read", "sessions:write"}
)

// matrixCaller is a role with a token of some permission. The rules below say what
// it may do and see, in the words of Decisions 10, 11 and 26.
type matrixCaller struct {
	*Client
	role, permission string
}

func rank(word string) int {
	_, level, of := strings.Cut(word, ":")
	if !of {
		level = word
	}
	return slices.Index([]string{"", "read", "write", "admin"}, level)
}

func (c matrixCaller) holds(needs string) bool {
	if c.role == "operator" {
		return true
	}
	level := rank(needs)
	if most := map[string]int{"owner": 3, "admin": 3, "member": 2, "guest": 2, "agent": 3, "client": 3}[c.role]; most < level {
		return false
	}
	area, _, narrow := strings.Cut(c.permission, ":")
	return (!narrow || strings.HasPrefix(needs, area+":") || needs == "drafts:write") && rank(c.permission) >= level
}

func (c matrixCaller) sees(k issueKind) bool {
	if c.role == "operator" || c.permission == "admin" && c.role != "member" && c.role != "guest" {
		return true
	}
	in := func(team string) bool { return slices.Contains(matrixTeams[team].members, c.role) }
	if !matrixTeams[k.team].public && (c.role == "guest" || !in(k.team)) {
		return false
	}
	kind := "user"
	if c.role == "agent" || c.role == "client" {
		kind = "agent"
	}
	for _, g := range k.grants {
		if g.actorType == "team" && in(g.role) || g.actorType == kind && g.role == c.role {
			return true
		}
	}
	return len(k.grants) == 0
}

func (c matrixCaller) expects(op *matrixOp, k issueKind) (status int, seen bool) {
	if op.inTeam {
		k.grants = nil
	}
	seen = c.sees(k)
	switch {
	case op.needs == "public":
	case c.role == "provisioner": // a connection that reads
		if op.needs != "scim" {
			return http.StatusUnauthorized, false
		}
		if op.method != "GET" {
			return http.StatusForbidden, false
		}
	case op.needs == "scim" && c.role != "operator" && c.role != "stranger":
		return http.StatusUnauthorized, false
	case c.role == "nobody":
		return http.StatusUnauthorized, false
	case c.role == "stranger":
		return http.StatusNotFound, false
	case !c.holds(op.needs):
		return http.StatusForbidden, false
	}
	if op.unseen != 0 && !seen {
		return op.unseen, false
	}
	if op.authors && c.role != "owner" && !c.holds("admin") { // the fixtures are the owner's
		return http.StatusForbidden, false
	}
	return op.ok, seen
}

// matrixWorld is a workspace with its people, and an issue of each kind.
type matrixWorld struct {
	t         *testing.T
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
	w := &matrixWorld{t: t, admin: NewClient(base, home.Token.Token, 4), workspace: home.Workspace.ID, fixtures: map[string]fixture{}}
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
	grantee := "bystander"
	for _, g := range k.grants {
		grantee = w.ids[g.role]
		w.do(t, "PUT", "/issues/"+text(issue, "id")+"/permissions", map[string]any{"actorId": grantee, "actorType": g.actorType}, 200)
	}
	share := w.do(t, "POST", "/issues/"+text(issue, "id")+"/share", nil, 201)
	ticket, unlinked := w.ticket(t), w.ticket(t)
	w.do(t, "PATCH", "/tickets/"+ticket, map[string]any{"issueId": id}, 200)
	// One that can be claimed, and one that was registered and so has a lane.
	queued := w.do(t, "POST", "/issues/"+id+"/dispatch", map[string]any{"agentId": name, "provider": name, "instructions": title}, 201)
	registered := w.do(t, "POST", "/agent/sessions/register", map[string]any{"issueId": id, "provider": "other", "providerSessionId": name, "status": "created"}, 201)
	session := text(registered["session"].(map[string]any), "id")
	w.do(t, "POST", "/agent/sessions/"+session+"/log", map[string]any{"message": title}, 201)
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
	body := map[string]any{"message": map[string]any{"from": "Ann", "subject": "Help", "text": "It fails."}}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	headers := append(signComms(w.mail, time.Now(), text), "X-Tracker-Delivery", fmt.Sprint("ticket ", w.tickets.Add(1)))
	if err := w.admin.Decode(t.Context(), "POST", "/webhooks/comms/"+w.workspace+"/mail", body, http.StatusAccepted, &made, headers...); err != nil {
		t.Fatal(err)
	}
	return made.TicketID
}

// TestPermissions holds every operation against the rules, for every role, with
// every permission, on every kind of issue.
func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newMatrixWorld(t)
	for who, c := range w.callers {
		t.Run(c.role+" "+c.permission, func(t *testing.T) {
			t.Parallel()
			for n, k := range issueKinds {
				for i := range matrixOps {
					op := &matrixOps[i]
					if op.unseen != 0 || n == 0 {
						w.try(t, c, op, k, fmt.Sprintf("x%dx%dx%d", who, n, i))
					}
				}
			}
		})
	}
}

// TestPermissions_Lanes holds every operation against Decision 36: the lane token of
// a session opens what is marked so, of that session and its issue, whoever else
// sees those; and nothing of any other.
func TestPermissions_Lanes(t *testing.T) {
	t.Parallel()
	w := newMatrixWorld(t)
	for n, k := range issueKinds {
		own := w.fixture(t, k, fmt.Sprintf("lane%d", n), "backlog")
		other := w.fixtures[issueKinds[(n+1)%len(issueKinds)].name]
		lane := *w.admin
		lane.Token = own["{lane}"]
		for i := range matrixOps {
			op := &matrixOps[i]
			for _, f := range []fixture{own, other} {
				isOwn := f["{id}"] == own["{id}"]
				want := http.StatusForbidden
				switch {
				case op.needs == "public", op.lanes && isOwn && !strings.Contains(op.path, "{child}"):
					want = op.ok
				case op.lanes && strings.HasPrefix(op.path, "/issues/"):
					want = http.StatusNotFound
				case op.lanes && strings.HasPrefix(op.path, "/drafts") && op.body["sessionId"] == nil:
					want = op.unseen
				}
				answer, err := lane.Do(t.Context(), op.method, w.path(f, op), f.bodyOf(op))
				if err != nil {
					t.Fatal(err)
				}
				if answer.Status != want {
					t.Errorf("%s, issue %s, its own: %t: %d, want %d: %s", op.name, k.name, isOwn, answer.Status, want, answer.Body)
				}
				if strings.Contains(string(answer.Body), other["{title}"]) && op.needs != "public" {
					t.Errorf("%s, issue %s: another's title is shown in %s", op.name, k.name, answer.Body)
				}
			}
		}
	}
}

// path is where an operation is asked for, about a fixture.
func (w *matrixWorld) path(f fixture, op *matrixOp) string {
	path := f.fill(op.path)
	if !op.bare {
		path = "/workspaces/" + w.workspace + path
	}
	return path
}

func (f fixture) bodyOf(op *matrixOp) any {
	if op.body == nil {
		return nil
	}
	return f.fillAll(op.body)
}

func (w *matrixWorld) try(t *testing.T, c matrixCaller, op *matrixOp, k issueKind, name string) {
	t.Helper()
	want, seen := c.expects(op, k)
	f := w.fixtures[k.name]
	if op.spends && seen {
		f = w.fixture(t, k, name, "backlog")
		w.do(t, "DELETE", "/templates/"+f["{below}"], nil, 204) // there can be 1,000
	}
	if op.name == "remove a grant" && seen && len(k.grants) == 0 {
		want = http.StatusNotFound // there is none
	}
	answer, err := c.Do(t.Context(), op.method, w.path(f, op), f.bodyOf(op))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status != want {
		t.Errorf("%s, issue %s: %d, want %d: %s", op.name, k.name, answer.Status, want, answer.Body)
		return
	}
	has := func(text string) bool { return strings.Contains(string(answer.Body), f.fill(text)) }
	if op.shows != "" && has(op.shows) != seen {
		t.Errorf("%s, issue %s: %s is shown: %t in %s", op.name, k.name, f.fill(op.shows), !seen, answer.Body)
	}
	if op.needs != "public" && !seen && has("{title}") {
		t.Errorf("%s, issue %s: its title is shown in %s", op.name, k.name, answer.Body)
	}
}

// unlisted are the operations that are in no row: those about no workspace, and the
// end of this one. Scripts and TestDeleteWorkspace_Callers cover them.
var unlisted = []string{
	"GET /workspaces", "POST /workspaces", "POST /workspaces/onboard", "GET /workspaces/slug/{slug}", "DELETE /workspaces/{organizationId}",
}

// Every operation has a row: a new one can't be forgotten.
func TestPermissions_EveryOperationHasARow(t *testing.T) {
	t.Parallel()
	param, rest := regexp.MustCompile(`\\\{\w+\\\}`), regexp.MustCompile(`\\\{\w+\\\.\\\.\\\.\\\}`)
	for _, route := range httpapi.Routes() {
		name := route.Method + " " + route.Path
		if strings.HasPrefix(route.Path, "/cluster") || slices.Contains(unlisted, name) {
			continue
		}
		pattern := regexp.MustCompile("^" + rest.ReplaceAllString(param.ReplaceAllString(regexp.QuoteMeta(route.Path), `[^/?]+`), `[^?]+`) + `(\?|$)`)
		if !slices.ContainsFunc(matrixOps, func(op matrixOp) bool {
			path := op.path
			if !op.bare {
				path = "/workspaces/{workspace}" + path
			}
			return op.method == route.Method && pattern.MatchString(path)
		}) {
			t.Errorf("%s has no row in matrixOps", name)
		}
	}
}
