package httpapi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"switchyard/internal/testkit"
)

func testRouter(t testing.TB) *router {
	t.Helper()
	var routes []*route
	for _, line := range []string{
		"GET /a", "POST /a", "GET /a/{id}", "GET /a/slug/{slug}", "POST /a/onboard", "GET /a/{id}/b", "PUT /a/{id}/b/{user}", "GET /a/{id}/b/fixed/c",
		"PUT /r/{kind}/{key...}", "PUT /r/{kind}/x/y", "GET /r/{kind}/{key}",
	} {
		method, path, _ := strings.Cut(line, " ")
		routes = append(routes, &route{Route: Route{Method: method, Path: path}, label: line})
	}
	r, err := newRouter(routes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouter_Finds(t *testing.T) {
	t.Parallel()
	r := testRouter(t)
	for _, row := range []struct{ method, uri, label, params string }{
		{"GET", "/a", "GET /a", ""},
		{"HEAD", "/a?x=/b", "GET /a", ""},
		{"POST", "/a", "POST /a", ""},
		{"PUT", "/a", "405", ""},
		{"GET", "/a/", "", ""},
		{"GET", "/a//b", "", ""},
		{"GET", "//a", "", ""},
		{"GET", "/A", "", ""},
		{"GET", "/a/x", "GET /a/{id}", "x"},
		{"GET", "/a/x%2Fb", "GET /a/{id}", "x/b"},
		{"GET", "/a/..", "GET /a/{id}", ".."},
		{"GET", "/a/../a", "", ""},
		{"GET", "/a/%2e%2e/b", "GET /a/{id}/b", ".."},
		{"GET", "/%61", "GET /a", ""},
		{"GET", "/a/slug/x", "GET /a/slug/{slug}", "x"},
		{"GET", "/a/slug%2Fx", "GET /a/{id}", "slug/x"},
		{"GET", "/a/slug", "GET /a/{id}", "slug"},
		{"GET", "/a/slug/b", "GET /a/slug/{slug}", "b"},
		{"GET", "/a/onboard", "405", ""},
		{"GET", "/a/onboard/b", "GET /a/{id}/b", "onboard"},
		{"PUT", "/a/x/b/y", "PUT /a/{id}/b/{user}", "x y"},
		{"PUT", "/a/x/b/fixed", "PUT /a/{id}/b/{user}", "x fixed"},
		{"GET", "/a/x/b/fixed/c", "GET /a/{id}/b/fixed/c", "x"},
		{"PUT", "/r/k/one", "405", ""},
		{"PUT", "/r/k/one/two", "PUT /r/{kind}/{key...}", "k one/two"},
		{"PUT", "/r/k/one/two/", "PUT /r/{kind}/{key...}", "k one/two/"},
		{"PUT", "/r/k/a%2Fb/c%20d", "PUT /r/{kind}/{key...}", "k a/b/c d"},
		{"PUT", "/r/k/x/y", "PUT /r/{kind}/x/y", "k"},
		{"PUT", "/r/k/x/z", "PUT /r/{kind}/{key...}", "k x/z"},
		{"PUT", "/r/k/../../a", "PUT /r/{kind}/{key...}", "k ../../a"},
		{"PUT", "/r/k", "", ""},
		{"PUT", "/r/k/", "", ""},
		{"PUT", "/r/k//x", "", ""},
		{"GET", "http://host/a/x?q", "GET /a/{id}", "x"},
		{"GET", "HTTPS://host?q", "", ""},
		{"GET", "http://", "broken", ""},
		{"GET", "ftp://host/a", "broken", ""},
		{"GET", "a", "broken", ""},
		{"GET", "*", "broken", ""},
		{"GET", "/a/%", "broken", ""},
		{"GET", "/a/%4", "broken", ""},
		{"GET", "/a/%ff", "broken", ""},
		{"GET", "/a/\xff", "broken", ""},
		{"GET", "/a/%00", "broken", ""},
		{"GET", "/a/" + strings.Repeat("x", 2000), "", ""},
		{"GET", strings.Repeat("/a", 40), "", ""},
	} {
		var tg target
		var p params
		label, values := "", ""
		switch tg.parse([]byte(row.uri)) {
		case targetBroken:
			label = "broken"
		case targetFine:
			if place := r.find(&tg, &p, new(fasthttp.RequestCtx)); place != nil {
				label = "405"
				if rt := place.route([]byte(row.method)); rt != nil {
					label = rt.label
					for i := range rt.params {
						values += " " + string(p[i])
					}
				}
			}
		}
		if label != row.label || strings.TrimSpace(values) != row.params {
			t.Errorf("%s %.40s: %q with %q", row.method, row.uri, label, values)
		}
	}
}

func TestRouter_RefusesBadRoutes(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"GET /a/{id", ""}, {"GET /a/{}"}, {"GET a"}, {"BREW /a"}, {"GET /{a}/{a}"}, {"GET /{a}/{b}/{c}/{d}/{e}"}, {"GET /a/{x}", "GET /a/{y}"},
		{"GET /{a...}/b"}, {"GET /{...}"}, {"GET /{a...}", "GET /{b...}"},
	} {
		var routes []*route
		for _, line := range lines {
			if method, path, ok := strings.Cut(line, " "); ok {
				routes = append(routes, &route{Route: Route{Method: method, Path: path}})
			}
		}
		if _, err := newRouter(routes); err == nil {
			t.Errorf("%v: no error", lines)
		}
	}
}

// The whole table is free of collisions and every operation binds.
func TestRoutes_Compile(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Engine: &fakeEngine{}}); err != nil {
		t.Fatal(err)
	}
}

func FuzzRouter(f *testing.F) {
	testkit.Corpus(f)
	r := testRouter(f)
	for _, uri := range []string{"/a", "/a/x/b/y?z=1", "/a/%2F/b", "//", "/..", "http://h/a", "*", "/%", "/a/\xff"} {
		f.Add([]byte(uri))
	}
	f.Fuzz(func(t *testing.T, uri []byte) {
		var tg target
		if tg.parse(uri) != targetFine {
			return
		}
		// However the path is written, the segments are those between its slashes.
		if n := strings.Count(string(tg.path), "/"); n != tg.n {
			t.Fatalf("%q: %d segments, %d slashes", tg.path, tg.n, n)
		}
		for _, segment := range tg.segments[:tg.n] {
			if !utf8.Valid(segment) || strings.IndexByte(string(segment), 0) >= 0 {
				t.Fatalf("%q has segment %q", tg.path, segment)
			}
		}
		var p params
		if place := r.find(&tg, &p, new(fasthttp.RequestCtx)); place != nil {
			for _, rt := range place.routes {
				if want := strings.Count(rt.Path, "/"); want != tg.n && (!rt.takesRest || tg.n < want) {
					t.Fatalf("%q goes to %s", tg.path, rt.Path)
				}
				for i := range rt.params {
					if len(p[i]) == 0 {
						t.Fatalf("%q goes to %s with an empty parameter", tg.path, rt.Path)
					}
				}
			}
		}
	})
}

func FuzzBind(f *testing.F) {
	testkit.Corpus(f)
	p, err := newPlan(opMake, []string{workspaceParam})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][2]string{
		{`{"title":"t","parts":[{"repo":"r"}],"settings":{"a":"b"},"any":[1e400],"labels":["a"],"count":1,"at":"2026-11-20T21:30:00Z"}`, "dedupe=warn&x"},
		{`{"title":"a\u0000","title":{"a":1,"a":2}}`, "dedupe=%zz"},
		{`[[[[`, "&&&=%"}, {"{\"a\":\"\xff\"}", "dedupe=block&dedupe=block"}, {``, ``},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, body, query []byte) {
		var b binder
		in := new(makeThingIn)
		sent := string(body)
		err := b.bind(p, in, &source{body: body, query: query, header: noHeaders{}})
		if string(body) != sent {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if failure, known := asFailure(err); !known || failure.statusCode() != 400 {
				t.Fatalf("%v", err)
			}
			return
		}
		// An accepted target is still right when the buffers are reused.
		clear(body)
		clear(query)
		for _, text := range append([]string{in.Title, in.Dedupe, in.Ref.Value, in.URL.Value}, in.Labels.Value...) {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				t.Fatalf("accepted %q", text)
			}
		}
		if n := utf8.RuneCountInString(in.Title); n < 1 || n > 20 || len(in.Labels.Value) > 3 || len(in.Parts) > 2 || len(in.Settings) > 2 || in.Count.Value < 0 {
			t.Fatalf("accepted %+v", in)
		}
	})
}
