package systemtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// transferLine is a line of an export, and its text.
type transferLine struct {
	N       *int           `json:"n"`
	Type    string         `json:"type"`
	Version int            `json:"version"`
	Data    object         `json:"data"`
	Counts  map[string]int `json:"counts"`
	SHA256  string         `json:"sha256"`
	text    []byte
}

// exportOf reads an export and checks its form: the first line is number first, no number
// is missing, and the last line has the counts and the sum of those before it.
func exportOf(t *testing.T, c *Client, workspace, query string, first int) (lines []transferLine, text []byte) {
	t.Helper()
	answer, err := c.Do(t.Context(), "GET", "/workspaces/"+workspace+"/export"+query, nil)
	if err != nil || answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("the export: %v, %d %v", err, answer.Status, answer.Header)
	}
	counts, sum := map[string]int{}, sha256.New()
	for n, line := range bytes.SplitAfter(bytes.TrimSuffix(answer.Body, []byte{'\n'}), []byte{'\n'}) {
		var l transferLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("line %d: %v: %s", n, err, line)
		}
		l.text = line
		lines = append(lines, l)
		if l.Type == "end" {
			continue
		}
		if l.N == nil || *l.N != first+n || l.Data == nil || (l.Type == "workspace") != (*l.N == 0) {
			t.Fatalf("line %d is %s", first+n, line)
		}
		counts[l.Type]++
		sum.Write(line)
	}
	end := lines[len(lines)-1]
	if end.Type != "end" || !maps.Equal(end.Counts, counts) || end.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		t.Fatalf("the last line is %s, there are %v", end.text, counts)
	}
	return lines, answer.Body
}

// exported returns the export of the workspace once nothing is done there any more: no children are
// being closed, and no deliveries made.
func (f *filled) exported() (lines []transferLine, text []byte) {
	f.Helper()
	testkit.Await(f.Context(), f.T, "the workspace is at rest", func() bool {
		if lines, text = exportOf(f.T, f.c, f.id, "", 0); bytes.Contains(text, []byte(`"type":"timer"`)) {
			return false
		}
		pending := f.do("GET", "/webhook-subscriptions/"+f.webhook+"/deliveries?status=pending&limit=1", nil, http.StatusOK)["deliveries"].([]any)
		_, again := exportOf(f.T, f.c, f.id, "", 0)
		return len(pending) == 0 && bytes.Equal(text, again)
	})
	return lines, text
}

// TestExport_HasEverythingButSecrets exports a workspace that has one of everything.
func TestExport_HasEverythingButSecrets(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	node, err := Launch(ctx, binary(t), t.TempDir(), []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, append([]string{"--shards", "2", "--sweep-interval", "100ms"}, toLocal...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	f := fillWorkspace(t, node.URL, "parting")
	root := NewClient(node.URL, rootToken, 2)

	lines, text := f.exported()
	if _, again := exportOf(t, root, f.id, "", 0); !bytes.Equal(text, again) {
		t.Errorf("the operator gets another export: %s", firstDifference(again, text))
	}
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l.Type] = true
	}
	for _, kind := range []string{
		"workspace", "settings", "retired_team_key", "team_number", "team", "member", "team_member", "scim_user", "scim_group", "scim_connection", "token", "oauth_client",
		"label", "project", "cycle", "template", "agent", "issue", "former_identifier", "burndown", "history", "comment", "attachment", "access_grant", "share",
		"session", "session_state", "session_instructions", "activity", "draft", "draft_state", "support_channel", "inbound_secret", "ticket", "ticket_message", "deal",
		"webhook_subscription", "webhook_delivery", "issued_user", "hold", "concurrency_limit", "relation", "attempt", "checkpoint", "usage",
	} {
		if !seen[kind] {
			t.Errorf("there is no line of type %s", kind)
		}
	}
	for _, secret := range append([]string{f.marker + "-token", "whsec_", `"hash"`, `"secret"`, "staleTokens", "laneTokens"}, f.tokens...) {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the export has %q", secret)
		}
	}
	if !bytes.Contains(text, []byte(f.share)) {
		t.Error("the export lacks the share's token")
	}
	for _, after := range []int{0, 1, len(lines) / 2, len(lines) - 3, len(lines) - 2, len(lines), 1 << 40} {
		rest, _ := exportOf(t, f.c, f.id, "?after="+strconv.Itoa(after), after+1)
		if want := max(0, len(lines)-2-after); len(rest)-1 != want {
			t.Errorf("%d lines come after line %d, want %d", len(rest)-1, after, want)
		}
	}
	file := filepath.Join(t.TempDir(), "parting.ndjson")
	code, out := switchyard(t, f.c.Token, "workspace", "export", file, "--workspace", f.id, "--url", node.URL)
	written, err := os.ReadFile(file)
	if code != 0 || err != nil || !bytes.Equal(written, text) {
		t.Errorf("the command ended with %d and %v: %s", code, err, out)
	}
	if code, out := switchyard(t, "swy_wrong", "workspace", "export", file+"2", "--workspace", f.id, "--url", node.URL); code != 4 || !strings.Contains(out, "does not accept the token") {
		t.Errorf("with a wrong token the command ended with %d: %s", code, out)
	}
	var shown struct{ Budgets []object }
	got, err := f.c.Do(ctx, "GET", "/workspaces/"+f.id+"/budgets", nil)
	if err != nil || json.Unmarshal(got.Body, &shown) != nil || len(shown.Budgets) == 0 {
		t.Fatalf("%v, budgets %d %s", err, got.Status, got.Body)
	}
	for _, l := range lines {
		if l.Type == "budget" {
			if !reflect.DeepEqual(l.Data, shown.Budgets[0]) {
				t.Errorf("a budget is exported as %s, and shown as %v", l.text, shown.Budgets[0])
			}
			shown.Budgets = shown.Budgets[1:]
		}
		id, _ := l.Data["id"].(string)
		path := map[string]string{
			"issue": "/issues/", "team": "/teams/", "label": "/labels/", "project": "/projects/", "cycle": "/cycles/", "template": "/templates/", "agent": "/agents/",
			"session": "/agent/sessions/", "draft": "/drafts/", "ticket": "/tickets/", "deal": "/deals/", "support_channel": "/support-channels/",
			"webhook_subscription": "/webhook-subscriptions/", "oauth_client": "/oauth-clients/",
		}[l.Type]
		if path == "" || strings.Contains(string(l.text), `"title":"Child"`) {
			continue
		}
		got, err := f.c.Do(ctx, "GET", "/workspaces/"+f.id+path+id, nil)
		if err != nil || got.Status != http.StatusOK || !sameJSON(t, got.Body, l.Data) {
			t.Errorf("%s is exported as %s, and shown as %d %s", l.Type, l.text, got.Status, got.Body)
		}
	}
}

// TestImport_MakesTheSameWorkspace takes an export into another cluster and into an empty
// workspace: what GET shows is the same.
func TestImport_MakesTheSameWorkspace(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	env := []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}
	launch := func(data string) *Process {
		node, err := Launch(ctx, binary(t), data, env, append([]string{"--shards", "2", "--sweep-interval", "100ms"}, toLocal...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Kill)
		return node
	}
	from := launch(t.TempDir())
	f := fillWorkspace(t, from.URL, "moving")
	_, text := f.exported()
	dir := t.TempDir()
	file := filepath.Join(dir, "moving.ndjson")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.ndjson")
	if err := os.WriteFile(damaged, bytes.Replace(text, []byte(`"type":"issue"`), []byte(`"type":"label"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}

	data := t.TempDir()
	to := launch(data)
	for path, place := range map[string]string{damaged: "line "} {
		if code, out := switchyard(t, rootToken, "workspace", "import", path, "--url", to.URL); code != 1 || !strings.Contains(out, place) {
			t.Errorf("the import of a damaged file ended with %d: %s", code, out)
		}
	}
	root := NewClient(to.URL, rootToken, 2)
	for range 2 { // the second finds the import done
		if code, out := switchyard(t, rootToken, "workspace", "import", file, "--url", to.URL); code != 0 {
			t.Fatalf("the import ended with %d: %s", code, out)
		}
	}
	if _, got := exportOf(t, root, f.id, "", 0); !bytes.Equal(got, text) {
		t.Errorf("the export of the copy differs: %s", firstDifference(got, text))
	}
	compareGets(t, f.c, root, f.id, f.id, text)

	home, err := NewClient(to.URL, "", 2).Onboard(ctx, "Filled", "filling")
	if err != nil {
		t.Fatal(err)
	}
	own := NewClient(to.URL, home.Token.Token, 2)
	for range 2 {
		if code, out := switchyard(t, home.Token.Token, "workspace", "import", file, "--workspace", home.Workspace.ID, "--url", to.URL); code != 0 {
			t.Fatalf("the import into a workspace ended with %d: %s", code, out)
		}
	}
	compareGets(t, root, own, f.id, home.Workspace.ID, text)
	if err := own.Decode(ctx, "POST", "/workspaces/"+home.Workspace.ID+"/issues", object{"title": "Goes on"}, http.StatusCreated, nil); err != nil {
		t.Error(err)
	}
	if code, out := switchyard(t, f.c.Token, "workspace", "import", file, "--workspace", f.id, "--url", from.URL); code != 1 || !strings.Contains(out, "409") {
		t.Errorf("the import into a workspace with content ended with %d: %s", code, out)
	}

	// A newer export of the same workspace is another file.
	f.do("POST", "/issues", object{"title": "Newer than the first export"}, http.StatusCreated)
	_, newer := f.exported()
	if err := os.WriteFile(file, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	for token, into := range map[string][]string{rootToken: nil, home.Token.Token: {"--workspace", home.Workspace.ID}} {
		if code, out := switchyard(t, token, append([]string{"workspace", "import", file, "--url", to.URL}, into...)...); code != 1 || !strings.Contains(out, "another file") {
			t.Errorf("the import of a newer export ended with %d: %s", code, out)
		}
	}
	if err := to.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if code, out := switchyard(t, "", "verify", "--data", data); code != 0 {
		t.Errorf("the data are not sound: %d %s", code, out)
	}
}

// firstDifference returns the first lines that differ.
func firstDifference(got, want []byte) string {
	a, b := bytes.Split(got, []byte{'\n'}), bytes.Split(want, []byte{'\n'})
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Sprintf("got\n%.1500s\nwant\n%.1500s", a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines and %d", len(a), len(b))
}

// switchyard runs a command of the binary and returns its exit code and output.
func switchyard(t *testing.T, token string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = append(os.Environ(), "SWITCHYARD_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// sameJSON reports whether a text has the value.
func sameJSON(t *testing.T, text []byte, value object) bool {
	t.Helper()
	var got object
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(value)
	return bytes.Equal(a, b)
}
