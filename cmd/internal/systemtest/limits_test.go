package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLimits_BytesOfAWorkspace: a workspace at its limit is told so, others don't notice,
// and a restart changes nothing.
func TestLimits_BytesOfAWorkspace(t *testing.T) {
	t.Parallel()
	const limit = 300 << 10
	data := t.TempDir()
	launch := func() *Process {
		t.Helper()
		p, err := Launch(t.Context(), binary(t), data, nil, "--limit-bytes", "300KiB")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := launch()
	defer func() { p.Kill() }()
	c := NewClient(p.URL, "", 2)
	o, err := c.Onboard(t.Context(), "Full", "full")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	issues := "/workspaces/" + o.Workspace.ID + "/issues"
	create := func(ref string) Answer {
		t.Helper()
		answer, err := c.Do(t.Context(), "POST", issues, map[string]any{"title": "Issue", "externalRef": ref, "description": strings.Repeat("Text. ", 5_000)})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	refused := func(a Answer) bool {
		t.Helper()
		if a.Status == http.StatusCreated {
			return false
		}
		var told struct {
			Code, Hint string
			Details    struct {
				Limit string
				Max   int
			}
		}
		if err := json.Unmarshal(a.Body, &told); err != nil {
			t.Fatal(err)
		}
		if a.Status != http.StatusConflict || told.Code != "CONFLICT" || told.Details.Limit != "bytes" || told.Details.Max != limit || !strings.Contains(told.Hint, "--limit-bytes") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		return true
	}
	made := 0
	for made < 100 && !refused(create(fmt.Sprint("ref ", made))) {
		made++
	}
	if made < 2 || made == 100 {
		t.Fatalf("refused after %d issues", made)
	}
	if a := create("ref 0"); a.Status != http.StatusOK {
		t.Errorf("an existing externalRef: %d %s", a.Status, a.Body)
	}
	neighbor := newDiskLoad(t, p)
	neighbor.create("one")
	neighbor.check(t)
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), binary(t), data); err != nil {
		t.Fatal(err)
	}
	p = launch()
	c.URL = p.URL
	if !refused(create("one more")) {
		t.Error("a restart made room")
	}
	var existing struct{ ID string }
	if err := json.Unmarshal(create("ref 0").Body, &existing); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Do(t.Context(), "DELETE", issues+"/"+existing.ID, nil); err != nil || a.Status != http.StatusNoContent {
		t.Errorf("a deletion: %d %s, %v", a.Status, a.Body, err)
	}
}
