package systemtest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/httpapi"
)

func TestRateLimit_TellsTheTokenThatIsOver(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.Rate = httpapi.Rate{Requests: 3, Per: time.Hour} })
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	o, err := c.Onboard(t.Context(), "Rated", "rated")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	path := "/workspaces/" + o.Workspace.ID
	for _, left := range []string{"2", "1", "0"} {
		path := path
		if left == "1" {
			path += "/export" // an answer whose head is written on its own
		}
		answer, err := c.Do(t.Context(), "GET", path, nil)
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("within the rate: %d, %v", answer.Status, err)
		}
		if answer.Header.Get("RateLimit-Limit") != "3" || answer.Header.Get("RateLimit-Remaining") != left {
			t.Errorf("with %s left: %v", left, answer.Header)
		}
	}
	answer, err := c.Do(t.Context(), "POST", path+"/issues", map[string]string{"title": "One too many"})
	if err != nil {
		t.Fatal(err)
	}
	var told struct{ Code, Hint string }
	if err := json.Unmarshal(answer.Body, &told); err != nil {
		t.Fatal(err)
	}
	if answer.Status != http.StatusTooManyRequests || told.Code != "TOO_MANY_REQUESTS" || told.Hint == "" || answer.Header.Get("Retry-After") == "" || answer.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("past the rate: %d %v %s", answer.Status, answer.Header, answer.Body)
	}
	for range 5 { // the operator has no limit
		c.Token = rootToken
		if answer, err := c.Do(t.Context(), "GET", path, nil); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("the operator: %d, %v", answer.Status, err)
		}
	}
}

// The headers tell where a workspace's own rate stands. Beside a token's rate they are about the
// one that leaves less.
func TestRateLimit_TellsOfTheWorkspacesRate(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.Rate = httpapi.Rate{Requests: 1000, Per: time.Hour} })
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	o, err := c.Onboard(t.Context(), "Rated", "rated")
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantStatus int, wantLimit, wantRemaining string) {
		t.Helper()
		c.Token = o.Token.Token
		answer, err := c.Do(t.Context(), "GET", "/workspaces/"+o.Workspace.ID, nil)
		if err != nil || answer.Status != wantStatus {
			t.Fatalf("answered %d, %v; want %d", answer.Status, err, wantStatus)
		}
		h := answer.Header
		if h.Get("RateLimit-Limit") != wantLimit || h.Get("RateLimit-Remaining") != wantRemaining || h.Get("RateLimit-Reset") == "" || (wantStatus == http.StatusTooManyRequests) != (h.Get("Retry-After") != "") {
			t.Errorf("answer %d: %v", wantStatus, h)
		}
	}
	limit := func(perSecond int) {
		t.Helper()
		c.Token = rootToken
		if err := c.Decode(t.Context(), "PUT", "/cluster/workspaces/"+o.Workspace.ID+"/limits", object{"limits": object{"requestsPerSecond": perSecond}}, http.StatusOK, nil); err != nil {
			t.Fatal(err)
		}
	}
	look(http.StatusOK, "1000", "999")
	limit(2000)
	look(http.StatusOK, "1000", "998")
	limit(500)
	look(http.StatusOK, "500", "499")
	limit(0)
	look(http.StatusTooManyRequests, "0", "0")
}
