package systemtest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// TestSimilar_FollowsWithinASecond creates two issues alike and waits until one is
// found by way of the other.
func TestSimilar_FollowsWithinASecond(t *testing.T) {
	t.Parallel()
	n := inProcess(t, nil)
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	do := func(method, path, body string, into any) {
		t.Helper()
		var sent any
		if body != "" {
			sent = json.RawMessage(body)
		}
		answer, err := c.Do(t.Context(), method, path, sent)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
		}
		if err := json.Unmarshal(answer.Body, into); err != nil {
			t.Fatal(err)
		}
	}
	var home struct {
		Workspace struct{ ID string }
		Token     struct{ Token string }
	}
	do("POST", "/workspaces/onboard", `{"name":"Similar","slug":"similar"}`, &home)
	c = NewClient("http://"+n.HTTPAddr(), home.Token.Token, 1)
	issues := "/workspaces/" + home.Workspace.ID + "/issues"
	var first, second struct{ ID string }
	do("POST", issues, `{"title":"The turntable does not turn","description":"Its motor hums."}`, &first)
	do("POST", issues, `{"title":"A motor hums"}`, &second)
	since := time.Now()
	for {
		var found struct {
			Similar []struct {
				Issue struct{ ID string }
				Score float64
			}
		}
		do("GET", issues+"/"+second.ID+"/similar", "", &found)
		if len(found.Similar) == 1 && found.Similar[0].Issue.ID == first.ID && found.Similar[0].Score > 0 {
			t.Logf("after %s", time.Since(since).Round(time.Millisecond))
			return
		}
		if len(found.Similar) > 0 {
			t.Fatalf("found %+v", found)
		}
		if time.Since(since) > 10*time.Second { // a second, but for a machine that is busy with other tests
			t.Fatal("nothing is similar")
		}
	}
}
