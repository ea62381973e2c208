package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/console/signin/oidctest"
)

// consoleWorld is a service with a workspace.
type consoleWorld struct {
	*Client // the workspace's owner
	url     string
	path    string
}

func newConsoleWorld(t *testing.T, slug string, change func(*node.Config)) *consoleWorld {
	t.Helper()
	n := inProcess(t, change)
	w := &consoleWorld{url: "http://" + n.HTTPAddr()}
	w.Client = NewClient(w.url, "", 2)
	o, err := w.Onboard(t.Context(), slug, slug)
	if err != nil {
		t.Fatal(err)
	}
	w.Token, w.path = o.Token.Token, "/workspaces/"+o.Workspace.ID
	t.Cleanup(w.HTTP.CloseIdleConnections)
	return w
}

// token makes a token.
func (w *consoleWorld) token(t *testing.T, in map[string]any) (made struct{ ID, Token string }) {
	t.Helper()
	if err := w.Decode(t.Context(), "POST", w.path+"/tokens", in, http.StatusCreated, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

func (w *consoleWorld) member(t *testing.T, in map[string]any) (id string) {
	t.Helper()
	var made struct{ UserID string }
	if err := w.Decode(t.Context(), "POST", w.path+"/members", in, http.StatusCreated, &made); err != nil {
		t.Fatal(err)
	}
	return made.UserID
}

// sessions counts the console sessions of the workspace.
func (w *consoleWorld) sessions(t *testing.T) (n int) {
	t.Helper()
	var list struct{ Tokens []struct{ Name string } }
	if err := w.Decode(t.Context(), "GET", w.path+"/tokens?limit=100", nil, 200, &list); err != nil {
		t.Fatal(err)
	}
	for _, token := range list.Tokens {
		if token.Name == "Console" {
			n++
		}
	}
	return n
}

func TestConsoleSession_OfATokenAndItsEnd(t *testing.T) {
	t.Parallel()
	w := newConsoleWorld(t, "console", nil)
	ada := w.member(t, map[string]any{"name": "Ada", "email": "ada@acme.example", "role": "member"})
	token := w.token(t, map[string]any{"name": "Ada's", "userId": ada, "permissions": "issues:write"})
	b := newTab(t, w.url)
	b.wants(401, "GET", "/console/session", nil)
	s := b.signIn(token.Token)
	if s.Kind != "member" || s.ActorID != ada || *s.Name != "Ada" || *s.Email != "ada@acme.example" || *s.Role != "member" || s.Permissions != "issues:write" || len(s.Workspaces) != 1 || s.Workspaces[0].Slug != "console" {
		t.Errorf("%+v", s)
	}
	if ends, err := time.Parse(time.RFC3339, *s.ExpiresAt); err != nil || time.Until(ends) < 11*time.Hour || time.Until(ends) > 12*time.Hour {
		t.Errorf("it ends at %s", *s.ExpiresAt)
	}
	for name, value := range b.cookies {
		if strings.Contains(value, token.Token) {
			t.Errorf("the cookie %s has the token", name)
		}
	}
	// The session has the rights of the token, no more and no less.
	b.wants(201, "POST", w.path+"/issues", map[string]any{"title": "From the console"})
	b.wants(403, "GET", w.path+"/tokens", nil)
	b.wants(403, "GET", w.path+"/members", nil)
	if w.sessions(t) != 1 {
		t.Error("the session is not among the tokens")
	}

	other := newTab(t, w.url)
	other.signIn(token.Token)
	// A session opens no other one, and the value of its cookie is no token to paste.
	for _, value := range other.cookies {
		newTab(t, w.url).wants(401, "POST", "/console/session", map[string]any{"token": value})
	}
	kept := map[string]string{}
	for name, value := range b.cookies {
		kept[name] = value
	}
	b.wants(204, "DELETE", "/console/session", nil)
	if len(b.cookies) != 0 {
		t.Error("the browser keeps the cookie")
	}
	b.cookies = kept // an attacker who has copied it
	b.wants(401, "GET", "/console/session", nil)
	b.wants(401, "GET", w.path+"/issues", nil)
	other.session()

	// The deletion of the token ends what was opened with it.
	if a, err := w.Do(t.Context(), "DELETE", w.path+"/tokens/"+token.ID, nil); err != nil || a.Status != 204 {
		t.Fatalf("%v %v", a, err)
	}
	other.wants(401, "GET", "/console/session", nil)
	if n := w.sessions(t); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestConsoleSession_Everywhere(t *testing.T) {
	t.Parallel()
	w := newConsoleWorld(t, "everywhere", nil)
	ada := w.member(t, map[string]any{"name": "Ada", "role": "member"})
	first, second := w.token(t, map[string]any{"name": "a", "userId": ada}), w.token(t, map[string]any{"name": "b", "userId": ada})
	owner := newTab(t, w.url)
	owner.signIn(w.Token)
	var tabs []*tab
	for _, token := range []string{first.Token, first.Token, second.Token} {
		b := newTab(t, w.url)
		b.signIn(token)
		tabs = append(tabs, b)
	}
	tabs[0].wants(204, "DELETE", "/console/session?everywhere=true", nil)
	for _, b := range tabs[1:] {
		b.wants(401, "GET", "/console/session", nil)
	}
	owner.session()
	newTab(t, w.url).signIn(first.Token) // the tokens themselves go on
}

// A new session in the same browser ends the old one, and an actor has at most 20.
func TestConsoleSession_AreBounded(t *testing.T) {
	t.Parallel()
	w := newConsoleWorld(t, "bounded", nil)
	b := newTab(t, w.url)
	for range 5 {
		b.signIn(w.Token)
	}
	if n := w.sessions(t); n != 1 {
		t.Errorf("%d sessions of one browser", n)
	}
	for range 24 {
		newTab(t, w.url).signIn(w.Token)
	}
	if n := w.sessions(t); n != 20 {
		t.Errorf("%d sessions", n)
	}
	b.wants(401, "GET", "/console/session", nil) // the oldest
}

func TestConsoleSession_EndsWithTimeAndMembership(t *testing.T) {
	t.Parallel()
	w := newConsoleWorld(t, "ends", func(c *node.Config) { c.ConsoleSession = time.Minute })
	ada := w.member(t, map[string]any{"name": "Ada", "role": "admin"})
	soon := time.Now().Add(4 * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
	short := w.token(t, map[string]any{"name": "short", "userId": ada, "expiresAt": soon})
	b, c := newTab(t, w.url), newTab(t, w.url)
	if s := b.signIn(short.Token); *s.ExpiresAt > soon {
		t.Errorf("it ends at %s, after its token", *s.ExpiresAt)
	}
	long := w.token(t, map[string]any{"name": "long", "userId": ada})
	c.signIn(long.Token)
	deadline := time.Now().Add(20 * time.Second)
	for w.sessions(t) > 1 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond) // the timer's turn comes without a request
	}
	if n := w.sessions(t); n != 1 {
		t.Errorf("%d sessions: the expired one is kept", n)
	}
	b.wants(401, "GET", "/console/session", nil)
	// A member who is removed has no access with a cookie either, and no session is left.
	if a, err := w.Do(t.Context(), "DELETE", w.path+"/members/"+ada, nil); err != nil || a.Status != 204 {
		t.Fatalf("%v %v", a, err)
	}
	c.wants(401, "GET", "/console/session", nil)
	c.wants(401, "GET", w.path+"/issues", nil)
	if n := w.sessions(t); n != 0 {
		t.Errorf("%d sessions of a removed member", n)
	}
}

func TestConsoleSession_WrongTokens(t *testing.T) {
	t.Parallel()
	w := newConsoleWorld(t, "wrong", nil)
	id, err := newIdentity(t.Context(), w.Client, "wrong-identity")
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, w.url)
	other := []byte(w.Token)
	if at := &other[len(other)/2]; *at == 'A' {
		*at = 'B'
	} else {
		*at = 'A'
	}
	for token, status := range map[string]int{
		"swy_x": 401, "nothing": 401, strings.Repeat("x", 512): 401, strings.Repeat("x", 513): 400, "": 400, "   ": 401,
		w.Token[:len(w.Token)-1]: 401, string(other): 401, rootToken + "x": 401, id.scim.Token: 400, id.client.ClientSecret: 400, "swr_" + strings.Repeat("A", 75): 401,
	} {
		a := b.send("POST", "/console/session", map[string]any{"token": token})
		if a.Status != status || a.Header.Get("Set-Cookie") != "" || status == 401 && !strings.Contains(string(a.Body), `"signIn":{"oidc":false}`) {
			t.Errorf("%.20q: %d %s", token, a.Status, a.Body)
		}
	}
	for body, status := range map[string]int{`{"token":1}`: 400, `{}`: 400, `[]`: 400, `{"token":"` + strings.Repeat("x", 5000) + `"}`: 413} {
		resp, err := http.Post(w.url+"/console/session", "application/json", strings.NewReader(body)) //nolint:noctx // a plain request
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%.20s: %d", body, resp.StatusCode)
		}
	}
	b.wants(400, "DELETE", "/console/session?everywhere=maybe", nil, "Authorization", "Bearer "+w.Token)
}

// The operator's session reads the cluster, and any node of it knows the cookie.
func TestCluster_ConsoleThroughEveryNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	idp, secret := oidctest.New(t), filepath.Join(t.TempDir(), "client-secret")
	if err := os.WriteFile(secret, []byte(oidctest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFleet(ctx, t, 3, "--shards", "4", "--oidc-issuer", idp.URL, "--oidc-client-id", oidctest.ClientID, "--oidc-client-secret-file", secret)
	c := f.members[0].Client("")
	var cookies []map[string]string
	var paths []string
	for i := range 4 {
		o, err := c.Onboard(ctx, "w", fmt.Sprintf("console-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		b := newTab(t, f.members[i%3].URL)
		b.signIn(o.Token.Token)
		cookies, paths = append(cookies, b.cookies), append(paths, "/workspaces/"+o.Workspace.ID)
	}
	operator := newTab(t, f.members[0].URL)
	operator.signIn(fleetRoot)
	for _, m := range f.members {
		for i, path := range paths {
			b := newTab(t, m.URL)
			b.cookies = cookies[i]
			b.wants(200, "GET", path+"/issues", nil)
			b.wants(201, "POST", path+"/issues", map[string]any{"title": "Through " + m.Name})
			b.wants(404, "GET", paths[(i+1)%len(paths)]+"/issues", nil)
			b.wants(401, "GET", path+"/issues", nil, "X-Switchyard-Console", "")
			b.wants(401, "GET", path+"/issues", nil, "Sec-Fetch-Site", "cross-site")
			if s := b.session(); len(s.Workspaces) != 1 || s.Workspaces[0].Slug != fmt.Sprintf("console-%d", i) {
				t.Errorf("%s: %+v", m.Name, s)
			}
		}
		b := newTab(t, m.URL)
		b.cookies = operator.cookies
		b.wants(200, "GET", "/cluster", nil)
		b.wants(200, "GET", paths[0]+"/issues", nil)
		if s := b.session(); s.Kind != "root" || len(s.Workspaces) != 4 {
			t.Errorf("%s: %+v", m.Name, s)
		}
	}
	// A sign-in that began at one node is finished by another, for a workspace of any.
	for i, path := range paths {
		address := fmt.Sprintf("ada-%d@acme.example", i)
		b := newTab(t, f.members[i%3].URL)
		b.cookies = operator.cookies
		b.wants(201, "POST", path+"/members", map[string]any{"email": address, "role": "member"})
		idp.As(person("ada", address))
		b = newTab(t, f.members[i%3].URL)
		answer := b.answer(fmt.Sprintf("/console/console-%d/issues", i))
		b.url = f.members[(i+1)%3].URL
		if at := b.location(b.send("GET", "/console/callback?"+answer.Encode(), nil)); at != fmt.Sprintf("/console/console-%d/issues", i) {
			t.Errorf("it leads to %s", at)
		}
		b.url = f.members[(i+2)%3].URL
		b.wants(200, "GET", path+"/issues", nil)
	}
	// A session that ends at one node has ended at all.
	b := newTab(t, f.members[1].URL)
	b.cookies = map[string]string{}
	for name, value := range cookies[0] {
		b.cookies[name] = value
	}
	b.wants(204, "DELETE", "/console/session", nil)
	for _, m := range f.members {
		b := newTab(t, m.URL)
		b.cookies = cookies[0]
		b.wants(401, "GET", paths[0]+"/issues", nil)
	}
}
