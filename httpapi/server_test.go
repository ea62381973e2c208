package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

func TestServer_Outcomes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		method, path, body string
		reply              tracker.Reply
		status             int
		headers            map[string]string
	}{
		{"GET", things + "/x", "", tracker.Reply{Body: []byte(`{"a":1}`), ETag: `"3"`}, 200, map[string]string{"ETag": `"3"`, "Content-Type": "application/json; charset=utf-8", "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}},
		{"GET", things + "/x", "", tracker.Reply{Outcome: tracker.NotModified, ETag: `"3"`}, 304, map[string]string{"ETag": `"3"`, "Content-Type": "", "Cache-Control": "private, no-cache"}},
		{"POST", things, `{"title":"t"}`, tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`), ETag: `"1"`}, 201, map[string]string{"ETag": `"1"`}},
		{"POST", things, `{"title":"t"}`, tracker.Reply{Outcome: tracker.Accepted, Body: []byte(`{}`)}, 202, nil},
		{"POST", things, `{"title":"t"}`, tracker.Reply{Body: []byte(`{}`), Replayed: true}, 200, map[string]string{"Idempotency-Replayed": "true"}},
		{"DELETE", things + "/x", "", tracker.Reply{Outcome: tracker.NoContent}, 204, map[string]string{"Content-Type": "", "Idempotency-Replayed": ""}},
		{"POST", "/open", `{"title":"t"}`, tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`)}, 201, map[string]string{"Cache-Control": "no-store"}},
	} {
		b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { return row.reply, nil })
		a := b.do(t, row.method, row.path, row.body)
		if a.StatusCode != row.status || a.body != string(row.reply.Body) {
			t.Errorf("%s %s: %d %q", row.method, row.path, a.StatusCode, a.body)
		}
		for name, want := range row.headers {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", row.method, row.path, name, got, want)
			}
		}
		if a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: no X-Request-Id", row.method, row.path)
		}
	}
}

func TestServer_Errors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err     error
		status  int
		headers map[string]string
		logged  string // in the log, and never in the answer
	}{
		{tracker.BadRequest(tracker.Fault{Path: "a", Message: "Is bad."}), 400, nil, ""},
		{tracker.Unauthorized(), 401, map[string]string{"WWW-Authenticate": `Bearer realm="switchyard", error="invalid_token"`, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}, ""},
		{tracker.Forbidden("No.", ""), 403, nil, ""},
		{fmt.Errorf("wrapped: %w", tracker.NotFound("thing")), 404, map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}, ""},
		{tracker.Conflict("Taken.", "Choose another."), 409, nil, ""},
		{&tracker.Error{Code: tracker.CodePreconditionFailed, Message: "Stale.", Hint: "Read it again."}, 412, nil, ""},
		{&tracker.Error{Code: tracker.CodeIdempotencyKeyReused, Message: "Reused.", Hint: "Choose another."}, 422, nil, ""},
		{&tracker.Error{Code: tracker.CodeTooManyRequests, Message: "Slow down.", Hint: "Wait.", RetryAfter: 1500 * time.Millisecond}, 429, map[string]string{"Retry-After": "2"}, ""},
		{tracker.NotApplied("Not now."), 503, map[string]string{"Retry-After": "1"}, ""},
		{&tracker.Error{Code: tracker.CodeUnavailable, Message: "Not now.", Hint: "Wait.", Details: tracker.OutcomeDetails{Outcome: "unknown"}}, 503, map[string]string{"Retry-After": "1"}, ""},
		{errors.New("disk on fire"), 500, nil, "disk on fire"},
		{&tracker.PanicError{Value: "boom", Stack: []byte("stack of boom")}, 500, nil, "stack of boom"},
		{&tracker.Error{Code: "NEW_CODE", Message: "What is this?"}, 500, nil, "What is this?"},
		{&tracker.Error{Code: tracker.CodeConflict, Message: "Taken.", Hint: "Wait.", Details: func() {}}, 409, nil, ""},
	} {
		t.Run(row.err.Error(), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { return tracker.Reply{}, row.err })
			for _, method := range []string{"GET", "DELETE"} {
				a := b.do(t, method, things+"/x", "", "X-Request-Id: the-id")
				if a.StatusCode != row.status {
					t.Errorf("%s: %d %s", method, a.StatusCode, a.body)
				}
				for name, want := range row.headers {
					if got := a.Header.Get(name); got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if row.logged == "" {
					continue
				}
				if strings.Contains(a.body, row.logged) {
					t.Errorf("the answer tells: %s", a.body)
				}
			}
			log := b.log.String()
			if (log == "") != (row.logged == "") || strings.Count(log, "the-id") != 2*min(1, len(row.logged)) || !strings.Contains(log, row.logged) {
				t.Errorf("logged %q", log)
			}
		})
	}
}

func TestServer_PanicIsInternal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { panic("secret cause") })
	for range 3 {
		a := b.do(t, "GET", things+"/x", "", "X-Request-Id: p-1")
		if a.StatusCode != 500 || a.failure.Code != tracker.CodeInternal || strings.Contains(a.body, "secret") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if log := b.log.String(); strings.Count(log, "request=p-1") != 3 || !strings.Contains(log, "secret cause") || !strings.Contains(log, "server_test.go") {
		t.Errorf("logged %q", log)
	}
}

func TestServer_RequestID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, given := range []string{"a", "A-b_c.9", strings.Repeat("x", 128)} {
		if got := b.do(t, "GET", things, "", "X-Request-Id: "+given).Header.Get("X-Request-Id"); got != given {
			t.Errorf("%q became %q", given, got)
		}
		if req, _, _ := b.engine.seen(); req.ID != given {
			t.Errorf("the engine got %q", req.ID)
		}
	}
	seen := map[string]bool{}
	for _, given := range []string{"", " ", "a b", "a\tb", "é", "<script>", strings.Repeat("x", 129)} {
		got := b.do(t, "GET", things, "", "X-Request-Id: "+given).Header.Get("X-Request-Id")
		if got == given || got == "" || seen[got] {
			t.Errorf("%q became %q", given, got)
		}
		seen[got] = true
	}
}

func TestServer_MethodsOfAPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"PUT", things, 405, "GET, HEAD, POST, OPTIONS"},
		{"OPTIONS", things, 204, "GET, HEAD, POST, OPTIONS"},
		{"OPTIONS", things + "/x", 204, "GET, HEAD, PATCH, DELETE, OPTIONS"},
		{"OPTIONS", "*", 204, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{"OPTIONS", "/nowhere", 404, ""},
		{"HEAD", "/open", 405, "POST, OPTIONS"},
		{"HEAD", "/healthz", 200, ""},
		{"HEAD", things + "/x", 200, ""},
		{"HEAD", "/nowhere", 404, ""},
		{"POST", "/healthz", 405, "GET, HEAD, OPTIONS"},
		{"get", things, 405, "GET, HEAD, POST, OPTIONS"},
	} {
		a := b.do(t, row.method, row.path, "")
		if a.StatusCode != row.status || a.Header.Get("Allow") != row.allow || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d, Allow %q", row.method, row.path, a.StatusCode, a.Header.Get("Allow"))
		}
		if a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: browsers may guess a type", row.method, row.path)
		}
		if row.method == "HEAD" && (a.body != "" || a.ContentLength <= 0) {
			t.Errorf("HEAD %s: body %q, length %d", row.path, a.body, a.ContentLength)
		}
		if a.Header.Get("Location") != "" {
			t.Errorf("%s %s is redirected", row.method, row.path)
		}
	}
}

func TestServer_PassesTheRequestOn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RequestTimeout = time.Minute })
	before := time.Now()
	a := b.do(t, "PATCH", things+"/a%2Fb%20%C3%A9?x=1", `{"ref":"r"}`, "If-Match: \"1\"", "If-Match: \"2\"", "Idempotency-Key: k-1", "Content-Type: application/merge-patch+json; charset=UTF-8")
	if a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	req, in, _ := b.engine.seen()
	got := in.(*changeThingIn)
	if got.ID != "a/b é" || got.IfMatch != `"1", "2"` || got.Ref.Value != "r" {
		t.Errorf("%+v", got)
	}
	if req.Workspace.String() != workspaceID || req.Credential != token || req.Idempotency == nil || req.Idempotency.Key != "k-1" {
		t.Errorf("%+v", req)
	}
	if due := req.Deadline.Sub(before); due < 59*time.Second || due > 70*time.Second {
		t.Errorf("due in %v", due)
	}
	first := req.Idempotency.Fingerprint
	for _, other := range []struct{ method, path, body string }{
		{"PATCH", things + "/a%2Fb%20%C3%A9?x=2", `{"ref":"r"}`},
		{"PATCH", things + "/a", `{"ref":"r"}`},
		{"PATCH", things + "/a%2Fb%20%C3%A9?x=1", `{"ref":"s"}`},
		{"DELETE", things + "/a%2Fb%20%C3%A9?x=1", ""},
	} {
		b.do(t, other.method, other.path, other.body, "Idempotency-Key: k-1")
		if req, _, _ := b.engine.seen(); req.Idempotency.Fingerprint == first {
			t.Errorf("%v has the same fingerprint", other)
		}
	}
	b.do(t, "GET", things, "", "Idempotency-Key: k-1")
	if req, _, _ := b.engine.seen(); req.Idempotency != nil {
		t.Error("a GET has an idempotency key")
	}
	b.do(t, "PATCH", things+"/x", "{}")
	if req, _, _ := b.engine.seen(); req.Idempotency != nil {
		t.Error("an idempotency key nobody sent")
	}
}

func TestServer_Credential(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER   abc": "abc", "Bearer": "", "Bearer ": "", "Bearer a b": "", "Basic abc": "", "Bearerabc": "", "": "", "Bearer \xff": "", "Bearer " + strings.Repeat("a", 513): "",
	} {
		if got := string(bearer([]byte(header))); got != want {
			t.Errorf("%q gives %q", header, got)
		}
	}
}

// Nothing an operation is given may change when fasthttp reuses its buffers.
func TestServer_InputsOutliveTheRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var mu sync.Mutex
	kept := map[string]*changeThingIn{}
	requests := map[string]*tracker.Request{}
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		got := in.(*changeThingIn)
		kept[strings.Clone(got.ID)], requests[strings.Clone(got.ID)] = got, req
		return tracker.Reply{}, nil
	})
	var sent strings.Builder
	const n = 100
	for i := range n {
		body := fmt.Sprintf(`{"ref":"ref-%04d","labels":["l%04d"]}`, i, i)
		fmt.Fprintf(&sent, "PATCH %s/id-%04d HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nX-Request-Id: req-%04d\r\nIf-Match: tag-%04d\r\nIdempotency-Key: key-%04d\r\nContent-Length: %d\r\n\r\n%s", things, i, token, i, i, i, len(body), body)
	}
	b.raw(t, n, sent.String())
	for i := range n {
		s := fmt.Sprintf("%04d", i)
		in, req := kept["id-"+s], requests["id-"+s]
		if in == nil || in.ID != "id-"+s || in.IfMatch != "tag-"+s || in.Ref.Value != "ref-"+s || in.Labels.Value[0] != "l"+s || req.ID != "req-"+s || req.Idempotency.Key != "key-"+s || req.Credential != token {
			t.Fatalf("%d: %+v %+v", i, in, req)
		}
	}
}

func TestServer_QueriesReuseTheirBuffer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var grown int
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		if cap(req.Buf) >= 5000 {
			grown++
		}
		id := in.(*thingIn).ID
		return tracker.Reply{Body: append(append(req.Buf[:0], id...), strings.Repeat("x", 5000)...)}, nil
	})
	var sent strings.Builder
	const n = 200
	for i := range n {
		fmt.Fprintf(&sent, "GET %s/id-%04d HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n", things, i, token)
	}
	for i, a := range b.raw(t, n, sent.String()) {
		if !strings.HasPrefix(a.body, fmt.Sprintf("id-%04dx", i)) || len(a.body) != 5007 {
			t.Fatalf("response %d is %.20q, %d bytes", i, a.body, len(a.body))
		}
	}
	if grown < n/2 {
		t.Errorf("the buffer came back %d times of %d", grown, n)
	}
}

func TestServer_LargeBodyWhereTheRouteTakesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"title":"t","any":"` + strings.Repeat("x", 3<<19) + `"}`
	if a := b.do(t, "POST", "/w/"+workspaceID+"/large", body); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.do(t, "POST", "/w/"+workspaceID+"/large", body+strings.Repeat(" ", 1<<20)); a.StatusCode != 413 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.do(t, "POST", things, body); a.StatusCode != 413 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestServer_Builtin(t *testing.T) {
	t.Parallel()
	var notReady error
	b := setup(t, func(c *Config) { c.Ready = func() error { return notReady } })
	if a := b.do(t, "GET", "/healthz", ""); a.StatusCode != 200 || a.body != `{"status":"ok"}` {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.do(t, "GET", "/readyz", ""); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	notReady = errors.New("no leader for shard 3")
	if a := b.do(t, "GET", "/readyz", ""); a.StatusCode != 503 || !strings.Contains(a.body, "shard 3") || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	a := b.do(t, "GET", "/docs", "")
	if a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", a.Header)
	}
	a.body = strings.ReplaceAll(a.body, "http://www.w3.org/2000/svg", "") // a name, which nobody asks for anything
	if strings.Contains(a.body, "http://") || strings.Contains(a.body, "https://") || strings.Contains(a.body, "//cdn") {
		t.Error("the page names another host")
	}
}

func TestServer_Metrics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(t, "GET", things, "")
	b.do(t, "GET", things+"/x", "")
	b.do(t, "GET", things+"/y", "")
	b.do(t, "GET", "/nowhere", "")
	w := httptest.NewRecorder()
	b.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`switchyard_http_request_duration_seconds_count{method="GET",route="/w/{organizationId}/things/{id}",status="200"} 2`,
		`switchyard_http_request_duration_seconds_count{method="GET",route="/w/{organizationId}/things",status="200"} 1`,
		`switchyard_http_request_duration_seconds_count{method="",route="none",status="404"} 1`,
		`switchyard_http_connections`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}

// RFC 6750, 3: a challenge has parameters, and says so where a token is not valid.
func TestServer_Challenges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const bare, invalid = `Bearer realm="switchyard"`, `Bearer realm="switchyard", error="invalid_token"`
	for header, want := range map[string]string{
		"X: y": bare, "Authorization: Bearer": bare, "Authorization: Bearer  ": bare, "Authorization: Basic YTpi": bare, "Authorization: bearer swy_bad": invalid,
		"Authorization: Bearer " + strings.Repeat("x", maxCredential+1): invalid, "Authorization: Bearer a b": invalid,
	} {
		a := b.raw(t, 1, "GET "+things+" HTTP/1.1\r\nHost: h\r\n"+header+"\r\n\r\n")[0]
		if got := a.Header.Get("WWW-Authenticate"); a.StatusCode != 401 || got != want {
			t.Errorf("%s: %d %s", header, a.StatusCode, got)
		}
	}
}
