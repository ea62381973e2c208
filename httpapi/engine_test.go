package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestServer_RefusesOperationsBeforeItHasAnEngine(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Cluster: &fakeCluster{}})
	if err != nil {
		t.Fatal(err)
	}
	b := serve(t, s)
	for _, path := range []string{"/workspaces", "/workspaces/" + workspaceID + "/issues", "/cluster"} {
		if got := b.as(t, operatorToken, "GET", path); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got.body, "not joined") {
			t.Errorf("GET %s: %d %s", path, got.StatusCode, got.body)
		}
	}
	s.UseEngine(&rootEngine{})
	if got := b.as(t, operatorToken, "GET", "/cluster"); got.StatusCode != http.StatusOK {
		t.Errorf("GET /cluster with an engine: %d %s", got.StatusCode, got.body)
	}
}
