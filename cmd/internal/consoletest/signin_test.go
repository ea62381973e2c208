package consoletest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"switchyard/cmd/internal/systemtest"
	"switchyard/console/signin/oidctest"
)

// signIn opens the console and signs in with a pasted token. It ends on the board of the workspace.
func (v *visitor) signIn(s *service, token string) {
	v.t.Helper()
	v.open("/console/")
	v.the("textbox", "Token").fill(token)
	v.the("button", "Sign in").click()
	v.arrives("/console/" + s.slug + "/issues.*")
	v.settles()
}

// signedIn opens a tab for a new visitor, who signs in with a token.
func signedIn(ctx context.Context, t testing.TB, s *service, token string) *visitor {
	t.Helper()
	v := visit(ctx, t, s.url)
	v.signIn(s, token)
	return v
}

// cookie returns the visitor's session cookie.
func (v *visitor) cookie() *network.Cookie {
	v.t.Helper()
	all, err := chromedp.Run(v.ctx, func(ctx context.Context, tab *chromedp.Target) ([]*network.Cookie, error) {
		res, err := cdp.Call(ctx, tab, network.GetCookies, network.GetCookiesParams{})
		return res.Cookies, err
	})
	if err != nil || len(all) != 1 {
		v.stop("%d cookies, %v", len(all), err)
	}
	return all[0]
}

// TestSignIn_WithAToken: the session is a cookie that scripts can't read, the pasted token stays nowhere in
// the browser, and the session ends with the sign-out.
func TestSignIn_WithAToken(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := visit(ctx, t, s.url)
	v.watch.allow("POST 401 /console/session", "POST 400 /console/session")

	v.open("/console/acme/queue")
	v.the("heading", "Switchyard").appears()
	v.the("textbox", "Token").fill("swy_not-a-token")
	v.the("button", "Sign in").click()
	v.the("alert", ".*").appears()
	v.the("textbox", "Token").has("swy_not-a-token")
	v.accessible("the sign-in page with an error")

	v.the("textbox", "Token").fill("  " + s.token + "\t")
	v.press("Enter")
	v.arrives("/console/acme/queue") // where the visitor wanted to go
	v.the("heading", "Queue").appears()
	v.the("link", "Cluster").goes()

	c := v.cookie()
	if !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Path != "/" || strings.Contains(c.Value, s.token) {
		t.Errorf("the cookie %s: HttpOnly %v, SameSite %s, path %s", c.Name, c.HTTPOnly, c.SameSite, c.Path)
	}
	kept := eval[string](v, `document.cookie + JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + location.href + document.documentElement.outerHTML`)
	if strings.Contains(kept, s.token) || strings.Contains(kept, c.Value) {
		t.Error("the browser keeps a secret where scripts can read it")
	}
	v.open("/console/")
	v.arrives("/console/acme/issues.*") // still signed in
	v.settles()

	v.watch.allow("GET 401 " + s.path + "/issues")
	// A page of another site has the cookie's attributes against it, and can't send the header.
	if got := eval[int](v, `fetch("`+s.path+`/issues").then((answer) => answer.status)`); got != http.StatusUnauthorized {
		t.Errorf("the cookie alone, without the console's header: %d", got)
	}

	v.the("button", "Account: .*").click()
	v.the("menuitem", "Sign out").click()
	v.the("textbox", "Token").appears()
	if status := withCookie(ctx, t, s, c); status != http.StatusUnauthorized {
		t.Errorf("the cookie after the sign-out: %d", status)
	}
}

// withCookie sends a request as the console does, with a cookie, and returns the status of the answer.
func withCookie(ctx context.Context, t testing.TB, s *service, c *network.Cookie) int {
	t.Helper()
	client := systemtest.NewClient(s.url, "", 1)
	defer client.HTTP.CloseIdleConnections()
	answer, err := client.Do(ctx, "GET", s.path+"/issues", nil, "Cookie", c.Name+"="+c.Value, "X-Switchyard-Console", "1")
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

// TestSignIn_AsTheOperator: the operator has no workspace of their own, sees all, and has the cluster's page.
func TestSignIn_AsTheOperator(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, rootToken)
	v.the("button", "Account: Operator").appears()
	v.the("link", "Cluster").click()
	v.the("heading", "Cluster").appears()
	v.settles()
	v.open("/console/?choose=1")
	v.the("link", "Acme.*").click()
	v.the("heading", "Issues").appears()
	v.settles()
	if c := v.cookie(); !c.HTTPOnly || strings.Contains(c.Value, rootToken) {
		t.Errorf("the operator's cookie: HttpOnly %v", c.HTTPOnly)
	}
}

// TestSignIn_WithAnIdentityProvider: a member is found by a verified address; others are told what to do.
func TestSignIn_WithAnIdentityProvider(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	idp := oidctest.New(t)
	secret := filepath.Join(t.TempDir(), "client-secret")
	if err := os.WriteFile(secret, []byte(oidctest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := onboarded(ctx, t, "--oidc-issuer", idp.URL, "--oidc-client-id", oidctest.ClientID, "--oidc-client-secret-file", secret)
	s.member(ctx, "Ada", "member", "read")
	s.member(ctx, "Ben", "member", "read")
	come := func() *visitor {
		t.Helper()
		v := visit(ctx, t, s.url)
		v.watch.hosts = append(v.watch.hosts, strings.TrimPrefix(idp.URL, "http://"))
		v.open("/console/acme/inbox")
		v.the("link", "Sign in with your organization").appears()
		return v
	}

	idp.As(oidctest.Claims{"sub": "ada-1", "email": "ada@acme.example", "email_verified": true})
	v := come()
	v.accessible("the sign-in page")
	v.the("link", "Sign in with your organization").click()
	v.arrives("/console/acme/inbox")
	v.the("heading", "Inbox").appears()
	v.the("button", "Account: Ada").appears()

	for _, refused := range []oidctest.Claims{
		{"sub": "eve-1", "email": "eve@acme.example", "email_verified": true},
		{"sub": "mallory-1", "email": "ben@acme.example", "email_verified": false},
	} {
		idp.As(refused)
		v := come()
		v.the("link", "Sign in with your organization").click()
		v.the("alert", ".*").appears()
		v.the("textbox", "Token").appears()
	}
}

// TestSignOut_Everywhere: a person's other browsers are asked to sign in again, over their page.
func TestSignOut_Everywhere(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	here, there := signedIn(ctx, t, s, s.token), signedIn(ctx, t, s, s.token)
	there.open(s.page("queue"))
	there.settles()
	there.watch.allow("GET 401 *", "POST 401 *")
	// The event streams end with the sessions.
	here.watch.allow("GET 401 " + s.path + "/events")

	here.the("button", "Account: .*").click()
	here.the("menuitem", "Sign out everywhere").click()
	here.the("dialog", "Sign out everywhere\\?").the("button", "Sign out everywhere").click()
	here.the("textbox", "Token").appears()

	// The event stream of the other browser ends with its session; nothing has to be pressed.
	again := there.the("dialog", "Your session has ended")
	again.appears()
	there.accessible("the sign-in over a page")
	again.the("textbox", "Token").fill(s.token)
	again.the("button", "Sign in again").click()
	again.goes()
	there.arrives("/console/acme/queue")
	there.the("status", ".*").appears()
	there.sees("Live")
}
