package systemtest

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLimits_HoldForManyAtOnce makes what is limited from many connections at once: as much is made as the
// limit allows, and no more (Decision 70).
func TestLimits_HoldForManyAtOnce(t *testing.T) {
	t.Parallel()
	const limit, tries = 20, 3
	c := newSimultaneousClients(t, 30)
	root := NewClient(c.clients[0].URL, rootToken, 1)
	limits := object{"issues": limit + 1, "sessions": limit, "tokens": limit + 1, "subscriptions": limit}
	var shown struct{ Used map[string]int }
	if err := root.Decode(t.Context(), "PUT", "/cluster/workspaces/"+c.workspace+"/limits", object{"limits": limits}, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	var issue Issue
	if err := c.clients[0].Decode(t.Context(), "POST", "/workspaces/"+c.workspace+"/issues", object{"title": "First"}, http.StatusCreated, &issue); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]func(n int) (path string, body object){
		"issues": func(n int) (string, object) {
			if n%10 == 0 {
				return "/issues/bulk", object{"items": []object{{"title": "One"}, {"title": "Two"}}}
			}
			return "/issues", object{"title": fmt.Sprint("Issue ", n)}
		},
		"sessions": func(n int) (string, object) {
			return "/issues/" + issue.ID + "/dispatch", object{"agentId": fmt.Sprint("bot-", n)}
		},
		"tokens": func(n int) (string, object) { return "/tokens", object{"name": fmt.Sprint("token ", n)} },
		"subscriptions": func(n int) (string, object) {
			return "/webhook-subscriptions", object{"url": fmt.Sprintf("https://example%d.com/", n)}
		},
	}
	var all sync.WaitGroup
	for i, one := range c.clients {
		for kind, request := range kinds {
			all.Go(func() {
				for try := range tries {
					path, body := request(i*tries + try)
					a, err := one.Do(t.Context(), "POST", "/workspaces/"+c.workspace+path, body)
					if err != nil || a.Status != http.StatusCreated && a.Status != http.StatusConflict {
						t.Errorf("%s: %v, %d %s", kind, err, a.Status, a.Body)
					}
				}
			})
		}
	}
	all.Wait()
	if err := root.Decode(t.Context(), "GET", "/cluster/workspaces/"+c.workspace+"/limits", nil, http.StatusOK, &shown); err != nil {
		t.Fatal(err)
	}
	delete(shown.Used, "bytes")
	if want := map[string]int{"issues": limit + 1, "sessions": limit, "tokens": limit + 1, "subscriptions": limit}; !maps.Equal(shown.Used, want) {
		t.Errorf("used are %v, want %v", shown.Used, want)
	}
	listed, err := c.clients[0].Walk(t.Context(), c.workspace, "")
	if err != nil || len(listed) != limit+1 {
		t.Errorf("%d issues are listed, %v", len(listed), err)
	}
}

// TestLimits_RatesHoldForManyAtOnce creates from many connections at once, faster than the limit of creates:
// not more are made than it allows for the time (Decision 70).
func TestLimits_RatesHoldForManyAtOnce(t *testing.T) {
	t.Parallel()
	const perSecond = 40
	c := newSimultaneousClients(t, 20)
	root := NewClient(c.clients[0].URL, rootToken, 1)
	if err := root.Decode(t.Context(), "PUT", "/cluster/workspaces/"+c.workspace+"/limits", object{"limits": object{"createsPerSecond": perSecond}}, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	var made, refused atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for _, one := range c.clients {
		all.Go(func() {
			for made.Load() < 2*perSecond || refused.Load() == 0 {
				a, err := one.Do(t.Context(), "POST", "/workspaces/"+c.workspace+"/issues", object{"title": "Many"})
				switch {
				case err == nil && a.Status == http.StatusCreated:
					made.Add(1)
				case err == nil && a.Status == http.StatusTooManyRequests && a.Header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("%v, %d %s", err, a.Status, a.Body)
					return
				}
			}
		})
	}
	all.Wait()
	// A second's may come at once.
	if most := perSecond + int64(time.Since(began).Seconds()*perSecond) + 1; made.Load() > most {
		t.Errorf("%d issues were made in %s, want at most %d", made.Load(), time.Since(began), most)
	}
}
