package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

type formIn struct {
	Authorization string `header:"Authorization"`
	GrantType     string `json:"grant_type" rules:"required,max=10"`
	Scope         string `json:"scope"`
}

type basedIn struct {
	Base string `service:"baseUrl"`
}

var (
	opForm  = tracker.NewCommand[formIn, thing]("Form", "Take a form", tracker.Needs{}, noCommand[formIn], tracker.WithSecret, func(o *tracker.Op) { o.MaxBody = 1000 })
	opBased = tracker.NewQuery[basedIn, thing]("Based", "Say where", tracker.Needs{}, noQuery[basedIn])
)

const scimThings = "/scim/v2/" + workspaceID + "/Things"

// inTongues starts a server with routes of every dialect.
func inTongues(t *testing.T, adjust ...func(*Config)) *bundle {
	t.Helper()
	engine := &fakeEngine{}
	cfg := Config{Engine: engine}
	for _, f := range adjust {
		f(&cfg)
	}
	s, err := newServer(cfg, append(fakeRoutes(),
		Route{"POST", "/scim/v2/{organizationId}/Things", opMake},
		Route{"POST", "/oauth/token", opForm},
		Route{"GET", "/based", opBased}))
	if err != nil {
		t.Fatal(err)
	}
	b := serve(t, s)
	b.engine = engine
	return b
}

// reply is what comes with the object of an answer.
type reply struct {
	StatusCode int
	Header     http.Header
}

// ask sends a request and gives the answer.
func (b *bundle) ask(t *testing.T, method, path, body string, headers ...string) (reply, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
	}
	return reply{resp.StatusCode, resp.Header}, object
}

// Every failure under a dialect's paths is answered in the dialect.
func TestDialect_EveryFailure(t *testing.T) {
	t.Parallel()
	b := inTongues(t)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, errors.New("the disk is made of cheese")
	})
	form := "Content-Type: application/x-www-form-urlencoded"
	for _, row := range []struct {
		method, path, body string
		headers            []string
		status             int
		word               string
	}{
		{"GET", "/scim/v2/nowhere", "", nil, 404, ""},
		{"GET", "/scim/", "", nil, 404, ""},
		{"GET", "/scim/" + strings.Repeat("x", 9000), "", nil, 414, ""},
		{"GET", scimThings, "", nil, 405, ""},
		{"POST", "/scim/v2/nowhere/Things", thingBody, nil, 404, ""},
		{"POST", scimThings, thingBody, []string{"Authorization: Bearer x"}, 401, ""},
		{"POST", scimThings, thingBody, []string{"Content-Type: text/plain"}, 415, ""},
		{"POST", scimThings, strings.Repeat(" ", 1<<20+1), nil, 413, ""},
		{"POST", scimThings, `{"title":`, nil, 400, "invalidSyntax"},
		{"POST", scimThings, `{"title":1,"ref":""}`, nil, 400, "invalidValue"},
		{"POST", scimThings, thingBody, nil, 500, ""},
		{"GET", "/oauth/nowhere", "", nil, 404, "invalid_request"},
		{"GET", "/oauth/token", "", nil, 405, "invalid_request"},
		{"POST", "/oauth/token", "{}", []string{"Content-Type: application/json"}, 415, "invalid_request"},
		{"POST", "/oauth/token", strings.Repeat("x", 1001), []string{form}, 413, "invalid_request"},
		{"POST", "/oauth/token", "scope=x", []string{form}, 400, "invalid_request"},
		{"POST", "/oauth/token", "grant_type=x&grant_type=x", []string{form}, 400, "invalid_request"},
		{"POST", "/oauth/token", "grant_type=%z", []string{form}, 400, "invalid_request"},
		{"POST", "/oauth/token", "grant_type=x", []string{form}, 500, "server_error"},
	} {
		resp, body := b.ask(t, row.method, row.path, row.body, row.headers...)
		name := row.method + " " + row.path[:min(40, len(row.path))]
		if resp.StatusCode != row.status || resp.Header.Get("X-Request-Id") == "" || body["code"] != nil {
			t.Errorf("%s: %d %v", name, resp.StatusCode, body)
			continue
		}
		text, word, media := body["error_description"], body["error"], "application/json; charset=utf-8"
		if strings.HasPrefix(row.path, "/scim/") {
			text, word, media = body["detail"], body["scimType"], "application/scim+json"
			if body["status"] != itoa(row.status) {
				t.Errorf("%s: status %v", name, body["status"])
			}
		} else if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Pragma") != "no-cache" {
			t.Errorf("%s may be kept", name)
		}
		if word == nil {
			word = ""
		}
		if got, _ := text.(string); got == "" || strings.Contains(got, "cheese") || word != row.word || resp.Header.Get("Content-Type") != media {
			t.Errorf("%s: %v, %s", name, body, resp.Header.Get("Content-Type"))
		}
	}
}

func TestDialect_Reasons(t *testing.T) {
	t.Parallel()
	b := inTongues(t)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, &tracker.Error{Code: tracker.CodeUnauthorized, Message: `Not "you" \ ä.`, Hint: "Go.", Reason: "a_reason"}
	})
	resp, body := b.ask(t, "POST", "/oauth/token", "grant_type=x", "Content-Type: application/x-www-form-urlencoded")
	if resp.StatusCode != 401 || body["error"] != "a_reason" || body["error_description"] != `Not 'you' ' . Go.` || resp.Header.Get("WWW-Authenticate") != `Basic realm="switchyard"` {
		t.Errorf("%d %v %v", resp.StatusCode, body, resp.Header)
	}
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, tracker.NotApplied("Busy.")
	})
	resp, body = b.ask(t, "POST", scimThings, thingBody)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || body["status"] != "503" {
		t.Errorf("%d %v %v", resp.StatusCode, body, resp.Header)
	}
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{"id":"x"}`), Location: "http://x/y"}, nil
	})
	resp, body = b.ask(t, "POST", scimThings, thingBody, "Content-Type: application/scim+json; charset=utf-8")
	if resp.StatusCode != 201 || resp.Header.Get("Location") != "http://x/y" || resp.Header.Get("Content-Type") != "application/scim+json" || body["id"] != "x" {
		t.Errorf("%d %v %v", resp.StatusCode, body, resp.Header)
	}
}

func TestDialect_Form(t *testing.T) {
	t.Parallel()
	b := inTongues(t)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{}`)}, nil
	})
	resp, _ := b.ask(t, "POST", "/oauth/token", "grant%5Ftype=a+b&other=%zz&scope=%C3%A4%26", "Content-Type: application/x-www-form-urlencoded", "Idempotency-Key: with a space")
	req, in, _ := b.engine.seen()
	if want := (formIn{Authorization: "Bearer " + token, GrantType: "a b", Scope: "ä&"}); resp.StatusCode != 200 || *in.(*formIn) != want {
		t.Errorf("%d %+v", resp.StatusCode, in)
	}
	if req.Idempotency != nil {
		t.Error("it has an idempotency key")
	}
}

// Where the client reaches the service is what the operator says, or else what it
// asked for.
func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"", "https://yard.example", "https://yard.example/"} {
		b := inTongues(t, func(c *Config) { c.PublicURL = public })
		var base string
		b.engine.set(func(_ *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
			base = in.(*basedIn).Base
			return tracker.Reply{Body: []byte(`{}`)}, nil
		})
		b.ask(t, "GET", "/based", "")
		want := strings.TrimSuffix(public, "/")
		if public == "" {
			want = "http://" + b.addr
		}
		if base != want {
			t.Errorf("with %q: %q", public, base)
		}
		_, metadata := b.ask(t, "GET", "/.well-known/oauth-authorization-server", "")
		if metadata["issuer"] != want || metadata["token_endpoint"] != want+"/oauth/token" {
			t.Errorf("with %q: %v", public, metadata)
		}
	}
}

// The node that is asked gives out a token, also if another node serves the directory.
func TestDialect_AnywhereIsNotForwarded(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	b := inTongues(t, func(c *Config) { c.Placement = seat{a, "a"} })
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{}`)}, nil
	})
	resp, _ := b.ask(t, "POST", "/oauth/token", "grant_type=x", "Content-Type: application/x-www-form-urlencoded")
	if _, _, calls := b.engine.seen(); resp.StatusCode != 200 || calls != 1 {
		t.Errorf("%d, carried out %d times", resp.StatusCode, calls)
	}
}

// Another node's answer in a dialect is passed on unchanged.
func TestDialect_Forwarded(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := inTongues(t, func(c *Config) { c.Placement = seat{a, "a"} })
	owner := inTongues(t, func(c *Config) { c.Placement = seat{a, "b"} })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.at["b"] = ln.Addr().String()
	go func() { _ = owner.ServePeers(ln) }()
	owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, &tracker.Error{Code: tracker.CodeConflict, Message: "Taken.", Reason: "uniqueness"}
	})
	resp, body := entry.ask(t, "POST", scimThings, thingBody)
	if resp.StatusCode != 409 || body["scimType"] != "uniqueness" || resp.Header.Get("Content-Type") != "application/scim+json" {
		t.Errorf("%d %v", resp.StatusCode, body)
	}
}
