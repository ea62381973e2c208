package systemtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/storage"
)

// target is a small workspace for bad requests.
type target struct {
	*testing.T
	c  *Client
	id string
	fixture
}

// newTarget makes a workspace, always in the same way.
func newTarget(t *testing.T, base, slug string) *target {
	t.Helper()
	home, err := NewClient(base, "", 1).Onboard(t.Context(), slug, slug)
	if err != nil {
		t.Fatal(err)
	}
	w := &target{T: t, c: NewClient(base, home.Token.Token, 1), id: home.Workspace.ID}
	text := func(of object, field string) string { return of[field].(string) }
	issue := text(w.do("POST", "/issues", object{"title": "Bad requests"}, 201), "id")
	child := text(w.do("POST", "/issues", object{"title": "Bad child", "parentId": issue, "externalRef": "taken"}, 201), "id")
	grandchild := text(w.do("POST", "/issues", object{"title": "Bad grandchild", "parentId": child}, 201), "id")
	comment := text(w.do("POST", "/issues/"+issue+"/comments", object{"body": "Said"}, 201), "id")
	w.do("PUT", "/issues/"+grandchild+"/relations/blocks/"+child, nil, 200)
	w.do("PUT", "/issues/"+child+"/relations/blocks/"+issue, nil, 200)
	star := []object{{"title": "Has 200 relations", "ref": "full"}}
	for range 200 {
		star = append(star, object{"title": "Related", "relations": []object{{"type": "relates", "ref": "full"}}})
	}
	full := text(w.do("POST", "/issues/bulk", object{"items": star}, 201)["issues"].([]any)[0].(object), "id")
	session := text(w.do("POST", "/issues/"+child+"/dispatch", object{}, 201), "id")
	w.do("POST", "/teams", object{"name": "Other", "key": "OTHER"}, 201)
	captured := text(w.do("POST", "/capture", captureBody(picture(64)), 201), "id")
	attachment := w.do("GET", "/issues/"+captured+"/attachments", nil, 200)["attachments"].([]any)[0].(object)
	revoked := w.do("POST", "/issues/"+issue+"/share", nil, 201)
	share := w.do("POST", "/issues/"+issue+"/share", nil, 201)
	w.fixture = fixture{
		"{workspace}": w.id, "{issue}": issue, "{child}": child, "{grandchild}": grandchild, "{comment}": comment, "{full}": full, "{session}": session, "{team}": home.Workspace.DefaultTeamID,
		"{share}": text(share, "token"), "{revoked}": text(revoked, "token"), "{attachment}": text(attachment, "id"),
		"{cursor}":       url.QueryEscape(text(w.do("GET", "/issues?limit=1", nil, 200), "nextCursor")),
		"{searchCursor}": url.QueryEscape(text(w.do("GET", "/issues?search=bad&limit=1", nil, 200), "nextCursor")),
	}
	return w
}

func (w *target) do(method, path string, body any, want int) (out object) {
	w.Helper()
	if err := w.c.Decode(w.Context(), method, "/workspaces/"+w.id+path, body, want, &out); err != nil {
		w.Fatal(err)
	}
	return out
}

// TestBadInput sends what is wrong in any way. Each is refused with the right
// status, code and faults, and nothing of it is stored: afterwards the workspace has
// as many rows as one in which nothing was tried, and reads as before.
func TestBadInput(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var tried, control *target
	t.Run("requests", func(t *testing.T) { // the node is stopped at its end
		n := inProcess(t, func(cfg *node.Config) { cfg.Data = data })
		base := "http://" + n.HTTPAddr()
		foreign := newTarget(t, base, "foreign")
		tried, control = newTarget(t, base, "tried"), newTarget(t, base, "control")
		for name, to := range map[string]string{"{foreign}": "{workspace}", "{foreignIssue}": "{issue}", "{foreignTeam}": "{team}", "{foreignShare}": "{share}", "{foreignAttachment}": "{attachment}", "{foreignCursor}": "{cursor}"} {
			tried.fixture[name] = foreign.fixture[to]
		}
		before := tried.everything()
		for i := range badRequests {
			tried.refuses(&badRequests[i])
		}
		for path, text := range tried.everything() {
			if text != before[path] {
				t.Errorf("%s was\n%s, is\n%s", path, before[path], text)
			}
		}
	})
	if t.Failed() {
		return
	}
	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	// The index for search and its timer follow in their own time, and so does the last use of
	// a token (29).
	own := func(rows map[storage.TableID]int) map[storage.TableID]int {
		maps.DeleteFunc(rows, func(id storage.TableID, _ int) bool { return id == 6 || id == 7 || id == 29 || id >= 70 && id < 80 })
		return rows
	}
	if got, want := own(tablesOf(t, store, tried.id)), own(tablesOf(t, store, control.id)); !maps.Equal(got, want) {
		t.Errorf("rows by table are\n%v, where nothing was tried\n%v", got, want)
	}
}

// lastUse matches the field that a good request sets, too, a moment after its answer.
var lastUse = regexp.MustCompile(`,"lastUsedAt":("[^"]*"|null)`)

// everything is what can be read of the workspace, by its path.
func (w *target) everything() map[string]string {
	w.Helper()
	all := map[string]string{}
	paths := []string{
		"", "/teams", "/members", "/tokens", "/labels", "/projects", "/cycles", "/templates", "/issues?includeSnoozed=true", "/issue-analytics", "/issues/{issue}/comments",
		"/issues/{issue}/history", "/issues/{issue}/permissions", "/issues/{issue}/share", "/issues/{child}/history", "/issues/{grandchild}/history",
		"/issues/{child}/relations", "/issues/{full}/relations?limit=100", "/agent/sessions", "/agent/sessions/{session}/activities", "/agent/sessions/{session}/attempts",
		"/agent/queue", "/agent/limits", "/holds", "/budgets", "/usage",
	}
	for _, path := range paths {
		answer, err := w.c.Do(w.Context(), "GET", "/workspaces/"+w.id+w.fill(path), nil)
		if err != nil || answer.Status != http.StatusOK {
			w.Fatalf("%s: %v, %d %s", path, err, answer.Status, answer.Body)
		}
		all[path] = lastUse.ReplaceAllString(string(answer.Body), "")
	}
	return all
}

// badCodes are the codes of Decision 4.
var badCodes = map[int]string{400: "BAD_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 409: "CONFLICT"}

func (w *target) refuses(bad *badRequest) {
	w.Helper()
	method, path, _ := strings.Cut(w.fill(bad.request), " ")
	path, shared := strings.CutPrefix(path, "{shared}")
	if shared {
		path = "/shared-issues" + path
	} else {
		path = "/workspaces/" + w.id + path
	}
	var body any
	if bad.body != nil {
		body = w.fillAll(bad.body)
	}
	answer, err := w.c.Do(w.Context(), method, path, body)
	if err != nil {
		w.Fatal(err)
	}
	sent, _ := json.Marshal(bad.body)
	name := bad.request[:min(len(bad.request), 100)] + " " + string(sent[:min(len(sent), 200)])
	if answer.Status != bad.status {
		w.Errorf("%s: %d, want %d: %s", name, answer.Status, bad.status, answer.Body)
		return
	}
	var told struct{ Code, Message, Hint string }
	if err := json.Unmarshal(answer.Body, &told); err != nil || told.Code != badCodes[bad.status] || told.Message == "" || told.Hint == "" {
		w.Errorf("%s: %v, %s", name, err, answer.Body)
	}
	var faults []string
	if bad.status == http.StatusBadRequest {
		faults = faultsOf(w.T, answer)
		slices.Sort(faults)
	}
	if got := strings.Join(faults, " "); got != bad.faults {
		w.Errorf("%s: faults of %q, want %q: %s", name, got, bad.faults, answer.Body)
	}
}

// TestSharedIssue_Expires waits for a share's end: from then on there is none.
func TestSharedIssue_Expires(t *testing.T) {
	t.Parallel()
	n := inProcess(t, nil)
	w := newTarget(t, "http://"+n.HTTPAddr(), "expires")
	ends := time.Now().Add(3 * time.Second) // the share is made before, also on a busy machine
	made := w.do("POST", "/issues/"+w.fixture["{child}"]+"/share", object{"expiresAt": ends.Format(time.RFC3339Nano)}, 201)
	public := "/shared-issues/" + w.id + "/" + made["token"].(string)
	for {
		asked := time.Now()
		answer, err := w.c.Do(t.Context(), "GET", public, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case answer.Status == http.StatusNotFound && !time.Now().Before(ends.Truncate(time.Millisecond)):
			if share, err := w.c.Do(t.Context(), "GET", "/workspaces/"+w.id+"/issues/"+w.fixture["{child}"]+"/share", nil); err != nil || string(share.Body) != "null" {
				t.Errorf("the share is %s, %v", share.Body, err)
			}
			return
		case answer.Status != http.StatusOK || asked.After(ends):
			t.Fatalf("%s before its end: %d %s", ends.Sub(asked), answer.Status, answer.Body)
		}
		time.Sleep(20 * time.Millisecond) // the clock is the node's own
	}
}
