package systemtest

import (
	"net/http"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestRetention_GoesOnAfterACrash kills a node between the choice of a retention and its
// sweep. The next process sweeps, and again after a time.
func TestRetention_GoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, time.Minute)
	defer cancel()
	data := t.TempDir()
	node, err := Launch(ctx, binary(t), data, nil, "--sweep-interval", "2s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Kill() })
	o, err := NewClient(node.URL, "", 1).Onboard(ctx, "Sweeping", "sweeping")
	if err != nil {
		t.Fatal(err)
	}
	base := "/workspaces/" + o.Workspace.ID
	var c *Client
	do := func(method, path string, body any, want int) (out object) {
		t.Helper()
		if err := c.Decode(ctx, method, base+path, body, want, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	c = NewClient(node.URL, o.Token.Token, 1)
	made := func() string {
		id, _ := do("POST", "/issues", object{"title": "Over", "status": "done"}, http.StatusCreated)["id"].(string)
		return id
	}
	archived := func(id string) func() bool {
		return func() bool { return do("GET", "/issues/"+id, nil, http.StatusOK)["archivedAt"] != nil }
	}
	first := made()
	do("PUT", "/retention", object{"closedIssuesDays": 0}, http.StatusOK)
	node.Kill()

	if node, err = Launch(ctx, binary(t), data, nil, "--sweep-interval", "100ms"); err != nil {
		t.Fatal(err)
	}
	c = NewClient(node.URL, o.Token.Token, 1)
	testkit.Await(ctx, t, "an issue that was closed before the crash to be archived", archived(first))
	second := made()
	testkit.Await(ctx, t, "an issue that was closed since to be archived", archived(second))
	do("PATCH", "/issues/"+first, object{"title": "No"}, http.StatusConflict)
	if list, _ := do("GET", "/issues", nil, http.StatusOK)["issues"].([]any); len(list) > 0 {
		t.Errorf("the list has %d issues", len(list))
	}
	do("POST", "/issues/"+second+"/dispatch", object{}, http.StatusConflict)

	do("PUT", "/retention", object{"closedIssuesDays": 0, "closedIssues": "delete"}, http.StatusOK)
	testkit.Await(ctx, t, "the deletion of archived issues", func() bool {
		list, _ := do("GET", "/issues?archived=true", nil, http.StatusOK)["issues"].([]any)
		return len(list) == 0
	})
	types := map[any]int{}
	events, _ := do("GET", "/events?types=issue.archived,issue.deleted&limit=100", nil, http.StatusOK)["events"].([]any)
	for _, e := range events {
		types[e.(object)["type"]]++
	}
	if types["issue.archived"] != 2 || types["issue.deleted"] != 2 {
		t.Errorf("told of %v", types)
	}
	if err := node.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := Verify(ctx, binary(t), data); err != nil {
		t.Error(err)
	}
}
