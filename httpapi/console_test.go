package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

const (
	fromConsole = "X-Switchyard-Console: 1"
	withCookie  = "Cookie: a=b; switchyard-session=" + token + "; c=d"
)

// A cookie counts with the console's header, from a page of the service, and only if there is
// neither another credential nor another cookie of that name.
func TestConsole_CookieCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/w/" + workspaceID + "/things"
	for _, row := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"with the header", []string{withCookie, fromConsole}, 200},
		{"of a page of the service", []string{withCookie, fromConsole, "Sec-Fetch-Site: same-origin"}, 200},
		{"without the header", []string{withCookie}, 401},
		{"with another value of the header", []string{withCookie, "X-Switchyard-Console: 2"}, 401},
		{"with an empty header", []string{withCookie, "X-Switchyard-Console: "}, 401},
		{"of a page of a neighbor", []string{withCookie, fromConsole, "Sec-Fetch-Site: same-site"}, 401},
		{"of a page of another site", []string{withCookie, fromConsole, "Sec-Fetch-Site: cross-site"}, 401},
		{"of no page", []string{withCookie, fromConsole, "Sec-Fetch-Site: none"}, 401},
		{"beside a token that is not valid", []string{withCookie, fromConsole, "Authorization: Bearer swy_bad"}, 401},
		{"beside credentials of another scheme", []string{withCookie, fromConsole, "Authorization: Basic eDp5"}, 401},
		{"beside a valid token, and itself not valid", []string{"Cookie: switchyard-session=swy_bad", fromConsole, "Authorization: Bearer " + token}, 200},
		{"twice", []string{withCookie, "Cookie: switchyard-session=" + token, fromConsole}, 401},
		{"twice in a header", []string{"Cookie: switchyard-session=swy_bad; switchyard-session=" + token, fromConsole}, 401},
		{"empty", []string{"Cookie: switchyard-session=", fromConsole}, 401},
		{"of the name that TLS needs", []string{"Cookie: __Host-switchyard-session=" + token, fromConsole}, 401},
		{"that is long", []string{"Cookie: switchyard-session=" + strings.Repeat("x", 4000), fromConsole}, 401},
		{"that has a space", []string{`Cookie: switchyard-session="a b"`, fromConsole}, 401},
	} {
		if a := b.plain(t, "GET", path, "", row.headers...); a.StatusCode != row.status {
			t.Errorf("a cookie %s: %d %s", row.name, a.StatusCode, a.body)
		}
	}
}

// With TLS the cookie has the name that no neighbor of the host can set.
func TestConsole_CookieWithTLS(t *testing.T) {
	t.Parallel()
	for _, adjust := range []func(*Config){
		func(c *Config) { c.Secure = true },
		func(c *Config) { c.PublicURL = "https://yard.example" },
	} {
		b := setup(t, adjust)
		path := "/w/" + workspaceID + "/things"
		if a := b.plain(t, "GET", path, "", withCookie, fromConsole); a.StatusCode != 401 {
			t.Errorf("without the prefix: %d", a.StatusCode)
		}
		if a := b.plain(t, "GET", path, "", "Cookie: __Host-switchyard-session="+token, fromConsole); a.StatusCode != 200 {
			t.Errorf("with the prefix: %d %s", a.StatusCode, a.body)
		}
		var h http.Header
		b.engine.set(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
			if op == tracker.OpenConsole {
				return tracker.Reply{Body: []byte(`{"secret":"` + token + `","expiresAt":"2999-01-01T00:00:00.000Z"}`)}, nil
			}
			return tracker.Reply{Body: []byte(`{"kind":"member","workspaces":[]}`)}, nil
		})
		a := b.plain(t, "POST", "/console/session", `{"token":"t"}`, fromConsole)
		if h = a.Header; a.StatusCode != 200 || len(h.Values("Set-Cookie")) != 1 {
			t.Fatalf("%d %s %v", a.StatusCode, a.body, h)
		}
		c := a.Cookies()[0]
		if c.Name != "__Host-switchyard-session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 {
			t.Errorf("%+v", c)
		}
		if h.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", h)
		}
	}
}

// A page of another origin can't sign its visitor in with the token of an attacker.
func TestConsole_OpenNeedsTheHeader(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.CORSOrigins = []string{"https://app.example"} })
	for _, headers := range [][]string{
		nil, {"X-Switchyard-Console: yes"}, {fromConsole, "Sec-Fetch-Site: cross-site"}, {fromConsole, "Sec-Fetch-Site: same-site"},
	} {
		a := b.plain(t, "POST", "/console/session", `{"token":"t"}`, headers...)
		if a.StatusCode != http.StatusForbidden || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%v: %d %s", headers, a.StatusCode, a.body)
		}
	}
	if _, _, calls := b.engine.seen(); calls != 0 {
		t.Errorf("%d calls", calls)
	}
	if a := b.plain(t, "POST", "/console/session", "token=t", "Content-Type: application/x-www-form-urlencoded", fromConsole); a.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", a.StatusCode)
	}
	a := b.plain(t, "OPTIONS", "/console/session", "", "Origin: https://app.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-switchyard-console")
	if allowed := a.Header.Get("Access-Control-Allow-Headers"); strings.Contains(strings.ToLower(allowed), "console") || strings.Contains(allowed, "*") {
		t.Errorf("pages of other origins may send %s", allowed)
	}
	if a.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("pages of other origins may send cookies")
	}
}

// A session of the operator is signed, ends, and ends with the root token.
func TestSessionCookie_OfTheOperator(t *testing.T) {
	t.Parallel()
	c, err := newSessionCookie("a root token", false)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	value, err := c.sealRoot(now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if ends, valid := c.openRoot([]byte(value), now); !valid || !ends.Equal(now.Add(time.Hour)) {
		t.Fatalf("%v %v", ends, valid)
	}
	if _, valid := c.openRoot([]byte(value), now.Add(time.Hour)); valid {
		t.Error("it is valid after its end")
	}
	again, err := c.sealRoot(now.Add(time.Hour))
	if err != nil || again == value {
		t.Errorf("two sessions are alike (%v)", err)
	}
	other, err := newSessionCookie("another root token", false)
	if err != nil {
		t.Fatal(err)
	}
	none, err := newSessionCookie("", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []*sessionCookie{&other, &none} {
		if _, valid := wrong.openRoot([]byte(value), now); valid {
			t.Error("it is valid under another root token")
		}
	}
	for i := range value {
		changed := []byte(value)
		changed[i] ^= 1
		if _, valid := c.openRoot(changed, now); valid {
			t.Errorf("byte %d can be changed", i)
		}
	}
	for _, cut := range []string{"", rootPrefix, value[:len(value)-1], value + "A"} {
		if _, valid := c.openRoot([]byte(cut), now); valid {
			t.Errorf("%q is valid", cut)
		}
	}
}

// The operator's session stands for the root token, which no cookie has.
func TestConsole_SessionOfTheOperator(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken = rootToken })
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		if !req.Caller.Root {
			return tracker.Reply{}, tracker.Unauthorized()
		}
		return tracker.Reply{Body: []byte(`{"kind":"root","workspaces":[]}`)}, nil
	})
	a := b.plain(t, "POST", "/console/session", `{"token":" `+rootToken+` "}`, fromConsole)
	if a.StatusCode != 200 || len(a.Cookies()) != 1 || !strings.Contains(a.body, `"expiresAt":"2`) {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	value := a.Cookies()[0].Value
	if strings.Contains(value, rootToken) || !strings.HasPrefix(value, rootPrefix) {
		t.Errorf("the cookie is %q", value)
	}
	cookie := "Cookie: switchyard-session=" + value
	if a := b.plain(t, "GET", "/console/session", "", cookie, fromConsole); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.plain(t, "GET", "/console/session", "", cookie); a.StatusCode != 401 || !strings.Contains(a.body, `"signIn":{"oidc":false}`) {
		t.Errorf("without the header: %d %s", a.StatusCode, a.body)
	}
	if a := b.plain(t, "GET", "/console/session", "", "Authorization: Bearer "+value); a.StatusCode != 401 {
		t.Errorf("the cookie's value is a token: %d %s", a.StatusCode, a.body)
	}
	if a := b.plain(t, "DELETE", "/console/session?everywhere=true", "", cookie, fromConsole); a.StatusCode != 409 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	a = b.plain(t, "DELETE", "/console/session", "", cookie, fromConsole)
	if a.StatusCode != 204 || len(a.Cookies()) != 1 || a.Cookies()[0].Value != "" || !a.Cookies()[0].Expires.Before(time.Now()) {
		t.Errorf("%d %v", a.StatusCode, a.Cookies())
	}
}

// A session of the operator ends the one that the browser had before, as any other does.
func TestConsole_OperatorEndsTheEarlierSession(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken = rootToken })
	var mu sync.Mutex
	var ended []string
	b.engine.set(func(req *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		if op == tracker.EndConsole {
			ended = append(ended, req.Credential)
			return tracker.Reply{Outcome: tracker.NoContent}, nil
		}
		return tracker.Reply{Body: []byte(`{"kind":"root","workspaces":[]}`)}, nil
	})
	a := b.plain(t, "POST", "/console/session", `{"token":"`+rootToken+`"}`, "Cookie: switchyard-session="+token, fromConsole)
	mu.Lock()
	defer mu.Unlock()
	if a.StatusCode != 200 || !slices.Equal(ended, []string{token}) {
		t.Errorf("%d %s, ended %v", a.StatusCode, a.body, ended)
	}
	if !strings.HasPrefix(a.Cookies()[0].Value, rootPrefix) {
		t.Errorf("the cookie is %q", a.Cookies()[0].Value)
	}
}

// An address of a sign-in leads to a page of the console, and nowhere else.
func TestReturnPath(t *testing.T) {
	t.Parallel()
	for _, fine := range []string{"/console/", "/console/acme/issues", "/console/acme/issues?view=list&search=a%20b", "/console/cluster", "/console/acme/issues/ACME-1"} {
		if got := returnPath(fine); got != fine {
			t.Errorf("%s leads to %s", fine, got)
		}
	}
	for _, wrong := range []string{
		"", "/", "//evil.example", "https://evil.example/console/", "/\\evil.example", "/console", "/consolex/", "/console//evil.example", "/console/..//evil.example",
		"/console/%2e%2e//evil.example", "/console/\\evil.example", "/console/a\r\nSet-Cookie: x=y", "/console/a b", "javascript:alert(1)", "/console/#x",
		"/console/sign-in?to=/console/sign-in", "/console/callback?code=x", "/console/" + strings.Repeat("a", 2000), "/console/é",
	} {
		if got := returnPath(wrong); got != consoleHome {
			t.Errorf("%q leads to %q", wrong, got)
		}
	}
	if got := returnPath("/console/acme/issues?error=sign-in-expired"); got != "/console/acme/issues" {
		t.Errorf("an earlier failure leads to %s", got)
	}
	for path, slug := range map[string]string{"/console/": "", "/console/acme/issues": "acme", "/console/acme/issues?x=/y": "acme", "/console/cluster": "", "/console/?to=a/b": ""} {
		if got := slugOf(path); got != slug {
			t.Errorf("%s is of workspace %q", path, got)
		}
	}
}

// Every page of the console has its address; files that are not there are not found.
func TestConsole_Files(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := b.plain(t, "GET", "/console/", "")
	if page.StatusCode != 200 || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || page.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("%d %v", page.StatusCode, page.Header)
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(page.Header.Get("Content-Security-Policy"), directive) {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	for _, path := range []string{"/console", "/console/acme/issues", "/console/acme/issues/ACME-1", "/console/cluster", "/console/acme/agents/claude.v1", "/console/acme/issues?view=board"} {
		if a := b.plain(t, "GET", path, ""); a.StatusCode != 200 || a.body != page.body {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	for _, path := range []string{"/console/nothing.js", "/console/nothing.html", "/consolex", "/docs/nothing", "/docs/nothing.js"} {
		if a := b.plain(t, "GET", path, ""); a.StatusCode != 404 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := b.plain(t, "POST", "/console/acme/issues", "{}"); a.StatusCode != 405 {
		t.Errorf("a POST of a page: %d", a.StatusCode)
	}
	if a := b.plain(t, "GET", "/console/acme", "", "If-None-Match: "+page.Header.Get("ETag")); a.StatusCode != 304 || a.body != "" {
		t.Errorf("the same page: %d %q", a.StatusCode, a.body)
	}
	_, rest, _ := strings.Cut(page.body, `<script type="module" src="`)
	script, _, _ := strings.Cut(rest, `"`)
	a := b.plain(t, "GET", script, "", "Accept-Encoding: zstd, gzip")
	if a.StatusCode != 200 || a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || a.Header.Get("Content-Encoding") != "zstd" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%s: %d %v", script, a.StatusCode, a.Header)
	}
}

func TestConsole_SwitchedOff(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.NoConsole = true })
	for _, path := range []string{"/console", "/console/", "/console/acme/issues", "/console/session", "/console/sign-in", "/console/callback"} {
		for _, m := range []string{"GET", "POST", "DELETE"} {
			if a := b.plain(t, m, path, "", fromConsole); a.StatusCode != 404 {
				t.Errorf("%s %s: %d", m, path, a.StatusCode)
			}
		}
	}
	if a := b.plain(t, "GET", "/w/"+workspaceID+"/things", "", withCookie, fromConsole); a.StatusCode != 401 {
		t.Errorf("a cookie: %d", a.StatusCode)
	}
	if strings.Contains(string(b.Description()), "/console") {
		t.Error("the description has the console")
	}
	if a := b.plain(t, "GET", "/docs", ""); a.StatusCode != 200 {
		t.Errorf("/docs: %d", a.StatusCode)
	}
}

// Sign-ins of an address are counted, whether they succeed or not.
func TestConsole_SignInRate(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits.SignIns = Rate{Requests: 3, Per: time.Minute} })
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, tracker.Unauthorized()
	})
	for n := range 4 {
		want := http.StatusUnauthorized
		if n == 3 {
			want = http.StatusTooManyRequests
		}
		a := b.plain(t, "POST", "/console/session", `{"token":"t"}`, fromConsole)
		if a.StatusCode != want || want == 429 && (!strings.Contains(a.body, "--sign-in-rate") || a.Header.Get("Retry-After") == "") {
			t.Errorf("sign-in %d: %d %s", n+1, a.StatusCode, a.body)
		}
	}
}
