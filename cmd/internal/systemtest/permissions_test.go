package systemtest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	case op.needs == "operator" && c.role != "operator":
		return http.StatusForbidden, false
	case c.role == "stranger":
		return http.StatusNotFound, false
	case !c.holds(op.needs), op.also != "" && !c.holds(op.also):
		return http.StatusForbidden, false
	}
	if op.people && (c.role == "agent" || c.role == "client") {
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

// TestPermissions_Lanes checks every operation against Decision 36: the lane token of
// a session opens the operations marked so, for that session and its issue, also restricted
// ones, and nothing of any other.
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
// end of this one. Scripts, TestConsoleSession_* and TestDeleteWorkspace_Callers cover them.
var unlisted = []string{
	"GET /workspaces", "POST /workspaces", "POST /workspaces/onboard", "GET /workspaces/slug/{slug}", "DELETE /workspaces/{organizationId}",
	"POST /console/session", "GET /console/session", "DELETE /console/session",
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
