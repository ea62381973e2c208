package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

const page = "https://app.example"

// sharing is a server whose answers pages of two origins may read.
func sharing(t *testing.T, adjust ...func(*Config)) *bundle {
	t.Helper()
	return setup(t, append(adjust, func(c *Config) { c.CORSOrigins = []string{page, "http://localhost:3000"} })...)
}

// wantShared checks the headers of an answer to a page of an allowed origin.
func wantShared(t *testing.T, what string, header http.Header, origin string) {
	t.Helper()
	if got := header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != origin {
		t.Errorf("%s: Access-Control-Allow-Origin is %q, want %q", what, got, origin)
	}
	if vary := header.Values("Vary"); len(vary) != 1 || !strings.HasPrefix(vary[0], "Origin") {
		t.Errorf("%s: Vary is %q", what, vary)
	}
	exposed := header.Get("Access-Control-Expose-Headers")
	for _, name := range []string{"ETag", "X-Request-Id", "Retry-After", "Idempotency-Replayed", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		if !strings.Contains(exposed+",", name+",") {
			t.Errorf("%s: %s is not exposed by %q", what, name, exposed)
		}
	}
	if header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%s: credentials are allowed", what)
	}
}

// wantUnshared checks that an answer lets no page read it.
func wantUnshared(t *testing.T, what string, header http.Header) {
	t.Helper()
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s is %q", what, name, header.Get(name))
		}
	}
}

func TestCORS_OriginsAreComparedExactly(t *testing.T) {
	t.Parallel()
	b := sharing(t)
	for _, origin := range []string{page, "http://localhost:3000"} {
		wantShared(t, origin, b.do(t, "GET", things, "", "Origin: "+origin).Header, origin)
	}
	for _, origin := range []string{
		"", "null", "*", "https://app.example/", "https://APP.example", "HTTPS://app.example", "http://app.example", "https://app.example:443", "https://app.example:8443",
		"https://app.example.evil.example", "https://evil-app.example", "https://x.app.example", "http://localhost", "http://localhost:30001", "https://app.example,http://localhost:3000",
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			a := b.do(t, method, things, "", "Origin: "+origin, "Access-Control-Request-Method: GET")
			wantUnshared(t, method+" from "+origin, a.Header)
			if got := a.Header.Get("Vary"); got != "Origin" {
				t.Errorf("%s from %q: Vary is %q, and a cache would give the answer to the pages that are allowed", method, origin, got)
			}
		}
	}
}

func TestCORS_OffUnlessOriginsAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, method := range []string{"GET", "OPTIONS"} {
		a := b.do(t, method, things, "", "Origin: "+page, "Access-Control-Request-Method: GET")
		wantUnshared(t, method, a.Header)
		if a.Header.Get("Vary") != "" {
			t.Errorf("%s: Vary is %q", method, a.Header.Get("Vary"))
		}
	}
}

func TestCORS_Preflights(t *testing.T) {
	t.Parallel()
	b := sharing(t)
	for _, path := range []string{things, things + "/x", "/open", "/healthz", "/nowhere"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			a := b.raw(t, 1, "OPTIONS "+path+" HTTP/1.1\r\nHost: test\r\nOrigin: "+page+"\r\nAccess-Control-Request-Method: "+method+"\r\nAccess-Control-Request-Headers: authorization,content-type\r\n\r\n")[0]
			if a.StatusCode != 204 || a.body != "" {
				t.Errorf("%s %s: %d %q", method, path, a.StatusCode, a.body)
			}
			wantShared(t, path, a.Header, page)
			if methods := a.Header.Get("Access-Control-Allow-Methods"); !strings.Contains(methods, method) {
				t.Errorf("%s is not among %q", method, methods)
			}
			if got := a.Header.Get("Access-Control-Allow-Headers"); got != "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id" {
				t.Errorf("the headers are %q", got)
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("browsers may guess a type")
			}
			if a.Header.Get("Access-Control-Max-Age") == "" {
				t.Error("a preflight has no age")
			}
		}
	}
	if _, _, calls := b.engine.seen(); calls != 0 {
		t.Errorf("preflights ran %d operations", calls)
	}
	// OPTIONS without the method that the page asks for is no preflight.
	if a := b.do(t, "OPTIONS", "/nowhere", "", "Origin: "+page); a.StatusCode != 404 {
		t.Errorf("%d", a.StatusCode)
	}
	if a := b.do(t, "OPTIONS", things, "", "Origin: "+page); a.StatusCode != 204 || a.Header.Get("Allow") == "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestCORS_EveryErrorCanBeRead(t *testing.T) {
	t.Parallel()
	b := sharing(t)
	head := " HTTP/1.1\r\nHost: test\r\nOrigin: " + page + "\r\n"
	good := head + "Authorization: Bearer " + token + "\r\n"
	b.engine.set(func(_ *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
		if op == opDelete {
			panic("boom")
		}
		return tracker.Reply{}, map[string]error{
			"conflict": tracker.Conflict("Taken.", "Choose another."), "limited": &tracker.Error{Code: tracker.CodeTooManyRequests, Message: "Slow down.", Hint: "Wait."},
			"unavailable": tracker.NotApplied("Not now."),
		}[in.(*thingIn).ID]
	})
	for _, row := range []struct {
		request string
		status  int
	}{
		{"POST " + things + good + "Content-Length: 2\r\n\r\n{}", 400},
		{"GET " + things + head + "\r\n", 401},
		{"GET " + things + head + "Authorization: Bearer bad\r\n\r\n", 401},
		{"GET /nowhere" + good + "\r\n", 404},
		{"GET /w/none/things" + good + "\r\n", 404},
		{"PUT " + things + good + "\r\n", 405},
		{"GET " + things + "/conflict" + good + "\r\n", 409},
		{"POST " + things + good + "Content-Length: 99999999\r\n\r\n", 413},
		{"POST " + things + good + "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413},
		{"GET /" + strings.Repeat("x", 9000) + good + "\r\n", 414},
		{"POST " + things + good + "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx", 415},
		{"POST " + things + good + "Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 415},
		{"GET " + things + "/limited" + good + "\r\n", 429},
		{"GET " + things + good + "X: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431},
		{"DELETE " + things + "/x" + good + "\r\n", 500},
		{"GET " + things + "/unavailable" + good + "\r\n", 503},
		{"GET " + things + good + "Bad Name: 1\r\n\r\n", 400},
		{"GET " + things + good + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	} {
		line, _, _ := strings.Cut(row.request, " HTTP/1.1")
		if len(line) > 60 {
			line = line[:60]
		}
		a := b.raw(t, 1, row.request)[0]
		if a.StatusCode != row.status {
			t.Errorf("%s: %d %s", line, a.StatusCode, a.body)
		}
		wantShared(t, line, a.Header, page)
	}
}

func TestCORS_OnFullNodes(t *testing.T) {
	t.Parallel()
	b := sharing(t, func(c *Config) { c.MaxConnections = 1 })
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	wantBody(t, r, 200, string(healthy))
	for _, request := range []string{"GET " + things, "OPTIONS " + things} {
		a := b.raw(t, 1, request+" HTTP/1.1\r\nHost: x\r\nOrigin: "+page+"\r\nAccess-Control-Request-Method: GET\r\n\r\n")[0]
		if a.StatusCode != 503 {
			t.Errorf("%s: %d", request, a.StatusCode)
		}
		wantShared(t, request, a.Header, page)
	}
}

func TestCORS_OfTheNodeThatIsAsked(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a", func(c *Config) { c.CORSOrigins = []string{page} })
	owner := a.join(t, "b", func(c *Config) { c.CORSOrigins = []string{page, "https://other.example"} })
	wantShared(t, "forwarded", entry.do(t, "GET", things+"/x", "", "Origin: "+page).Header, page)
	wantUnshared(t, "forwarded", entry.do(t, "GET", things+"/x", "", "Origin: https://other.example").Header)
	wantShared(t, "direct", owner.do(t, "GET", things+"/x", "", "Origin: https://other.example").Header, "https://other.example")
}

func TestCORS_Streams(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	allow := func(c *Config) { c.CORSOrigins = []string{page} }
	entry, owner := a.join(t, "a", allow), a.join(t, "b", allow)
	for name, asked := range map[string]*bundle{"relayed": entry, "direct": owner} {
		f := newFakeStream()
		owner.engine.stream = f
		c, err := net.Dial("tcp", asked.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip, zstd\r\nOrigin: "+page+"\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		wantShared(t, name, resp.Header, page)
		if resp.Header.Get("Content-Encoding") != "" || strings.Contains(resp.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %v", name, resp.Header)
		}
		(<-f.started).End()
		_, _ = io.Copy(io.Discard, resp.Body) // until the stream's end
		_ = c.Close()
	}
}

func TestCORS_OriginsThatNoBrowserSends(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"", "*", "null", "app.example", "https://", "https://*.app.example", "https://app.example/", "https://app.example/path", "https://App.example", "https://app.example:443", "http://app.example:80", "https://me@app.example", "https://a.example,https://b.example", "https://a b"} {
		if _, err := newServer(Config{Engine: &fakeEngine{}, CORSOrigins: []string{page, origin}}, fakeRoutes()); err == nil {
			t.Errorf("%q is taken", origin)
		}
	}
	for _, origin := range []string{page, "http://localhost:3000", "http://[::1]:8080", "chrome-extension://abcdef", "https://app.example:8443", "http://10.0.0.1"} {
		if _, err := newServer(Config{Engine: &fakeEngine{}, CORSOrigins: []string{origin}}, fakeRoutes()); err != nil {
			t.Error(err)
		}
	}
}

func TestCORS_ToolsTakeAllowedPages(t *testing.T) {
	t.Parallel()
	b := sharing(t)
	b.engine.set(scoped(nil))
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for origin, want := range map[string]int{page: 200, "https://other.example": 403} {
		a := b.do(t, "POST", "/w/"+workspaceID+"/sessions/x/mcp", ping, "Origin: "+origin, "Content-Type: application/json", "Accept: application/json, text/event-stream")
		if a.StatusCode != want {
			t.Errorf("%s: %d %s", origin, a.StatusCode, a.body)
		}
	}
}
