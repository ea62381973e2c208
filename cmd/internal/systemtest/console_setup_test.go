package systemtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchyard/console/signin/oidctest"
)

// tab is a browser's tab with the console: it keeps cookies by the host, and sends the
// console's header.
type tab struct {
	t       *testing.T
	url     string
	cookies map[string]string
}

func newTab(t *testing.T, base string) *tab {
	return &tab{t: t, url: base, cookies: map[string]string{}}
}

// send sends a request as a page of the console does. headers come in pairs.
func (b *tab) send(method, path string, body any, headers ...string) Answer {
	b.t.Helper()
	c := NewClient(b.url, "", 1)
	defer c.HTTP.CloseIdleConnections()
	c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	headers = append([]string{"X-Switchyard-Console", "1", "Sec-Fetch-Site", "same-origin"}, headers...)
	if len(b.cookies) > 0 {
		var pairs []string
		for name, value := range b.cookies {
			if strings.HasPrefix(path, "/console/callback") && name == "switchyard-session" {
				continue // it is SameSite=Strict, and the navigation comes from another site
			}
			pairs = append(pairs, name+"="+value)
		}
		headers = append(headers, "Cookie", strings.Join(pairs, "; "))
	}
	a, err := c.Do(b.t.Context(), method, path, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cookie := range (&http.Response{Header: a.Header}).Cookies() {
		if cookie.MaxAge < 0 || cookie.Value == "" {
			delete(b.cookies, cookie.Name)
		} else {
			b.cookies[cookie.Name] = cookie.Value
		}
	}
	return a
}

// wants sends a request and compares the status of its answer.
func (b *tab) wants(status int, method, path string, body any, headers ...string) Answer {
	b.t.Helper()
	a := b.send(method, path, body, headers...)
	if a.Status != status {
		b.t.Fatalf("%s %s: %d, want %d: %s", method, path, a.Status, status, a.Body)
	}
	return a
}

// visitorSession is the session that a tab has.
type visitorSession struct {
	Kind, ActorID, Permissions string
	ActorType, Name, Role      *string
	Email, ExpiresAt           *string
	Workspaces                 []struct{ ID, Slug, Name string }
	SignIn                     struct{ OIDC bool }
}

func (b *tab) signIn(token string) visitorSession {
	b.t.Helper()
	return b.read(b.wants(200, "POST", "/console/session", map[string]string{"token": token}))
}

func (b *tab) session() visitorSession {
	b.t.Helper()
	return b.read(b.wants(200, "GET", "/console/session", nil))
}

func (b *tab) read(a Answer) (s visitorSession) {
	b.t.Helper()
	if err := json.Unmarshal(a.Body, &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// confirmed signs in at the identity provider, and returns the address that the console sends
// the browser to in the end.
func (b *tab) confirmed(to string) string {
	b.t.Helper()
	return b.location(b.send("GET", "/console/callback?"+b.answer(to).Encode(), nil))
}

// answer goes to the identity provider and returns the answer that the browser brings back.
func (b *tab) answer(to string) url.Values {
	b.t.Helper()
	begun := b.location(b.send("GET", "/console/sign-in?to="+url.QueryEscape(to), nil))
	if !strings.Contains(begun, "/authorize?") {
		b.t.Fatalf("the sign-in leads to %s", begun)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, begun, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	at, err := resp.Location()
	if err != nil {
		b.t.Fatal(err)
	}
	return at.Query()
}

func (b *tab) location(a Answer) string {
	b.t.Helper()
	if a.Status != http.StatusSeeOther {
		b.t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a.Header.Get("Location")
}

// person is one that the identity provider has verified.
func person(subject, email string) oidctest.Claims {
	return oidctest.Claims{"sub": subject, "email": email, "email_verified": true}
}
