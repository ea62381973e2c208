package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/cmd/internal/node"
)

// wantRefusal looks at a refusal that names its flag.
func wantRefusal(t *testing.T, a Answer, err error, status int, flag string) {
	t.Helper()
	var told struct{ Code, Message, Hint string }
	if err != nil || json.Unmarshal(a.Body, &told) != nil {
		t.Fatalf("%v %s", err, a.Body)
	}
	if a.Status != status || told.Hint == "" || !strings.Contains(told.Message, flag) || status == http.StatusTooManyRequests && a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s, want %d and %s", a.Status, a.Header, a.Body, status, flag)
	}
}

// The strangers of an address make so many workspaces in a while, and so do its known
// callers; the operator makes any number.
func TestShares_OnboardingPerAddress(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.Shares.OnboardingRate = "4/h" })
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	o, err := c.Onboard(t.Context(), "First", "first")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	c.Token = ""
	for i := range 3 {
		if a, err := c.Do(t.Context(), "POST", "/workspaces/onboard", map[string]string{"name": "Next", "slug": fmt.Sprint("next-", i)}); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("%v %d %s", err, a.Status, a.Body)
		}
	}
	c.Token = o.Token.Token
	for i := range 4 {
		if a, err := c.Do(t.Context(), "POST", "/workspaces", map[string]string{"name": "More", "slug": fmt.Sprint("more-", i)}); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("%v %d %s", err, a.Status, a.Body)
		}
	}
	a, err := c.Do(t.Context(), "POST", "/workspaces", map[string]string{"name": "More", "slug": "more-9"})
	wantRefusal(t, a, err, http.StatusTooManyRequests, "--onboarding-rate")
	c.Token = ""
	a, err = c.Do(t.Context(), "POST", "/workspaces/onboard", map[string]string{"name": "Another", "slug": "another"})
	wantRefusal(t, a, err, http.StatusTooManyRequests, "--onboarding-rate")
	c.Token = rootToken
	for i := range 5 {
		if a, err := c.Do(t.Context(), "POST", "/workspaces/onboard", map[string]string{"name": "Root", "slug": fmt.Sprint("root-", i)}); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("the operator: %v %d %s", err, a.Status, a.Body)
		}
	}
}

// A user makes so many workspaces with any of their tokens, wherever they are a guest.
func TestShares_WorkspacesPerUser(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.Shares.WorkspacesPerUser = 3 })
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	for i := range 5 { // each onboarding makes a user
		o, err := c.Onboard(t.Context(), "W", fmt.Sprint("w-", i))
		if err != nil {
			t.Fatal(err)
		}
		c.Token = o.Token.Token
	}
	for i := range 2 {
		if a, err := c.Do(t.Context(), "POST", "/workspaces", map[string]string{"name": "More", "slug": fmt.Sprint("more-", i)}); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("%v %d %s", err, a.Status, a.Body)
		}
	}
	a, err := c.Do(t.Context(), "POST", "/workspaces", map[string]string{"name": "More", "slug": "more-9"})
	wantRefusal(t, a, err, http.StatusConflict, "--workspaces-per-user")
}
