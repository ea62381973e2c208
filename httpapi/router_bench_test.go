package httpapi

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkRouter is the price of finding the route of a request line, its target's
// parsing included.
func BenchmarkRouter(b *testing.B) {
	s, err := New(Config{Engine: &fakeEngine{}})
	if err != nil {
		b.Fatal(err)
	}
	const workspace = "/workspaces/01a1fbc1-39ee-7fe1-9b18-1688c1bb31c9"
	const id = "/01a1fbc1-3a3c-7000-aba9-541ca101f21c"
	for _, row := range []struct{ name, method, uri string }{
		{"list", "GET", workspace + "/issues?limit=50"},
		{"create", "POST", workspace + "/issues"},
		{"get", "GET", workspace + "/issues" + id},
		{"claim", "POST", workspace + "/agent/sessions/claim"},
		{"poll", "POST", workspace + "/agent/sessions" + id + "/poll"},
		{"share", "DELETE", workspace + "/issues" + id + "/share/abcdefgh"},
	} {
		b.Run(row.name, func(b *testing.B) {
			var t target
			var p params
			ctx := new(fasthttp.RequestCtx)
			method, uri := []byte(row.method), []byte(row.uri)
			b.ReportAllocs()
			for b.Loop() {
				if t.parse(uri) != targetFine || s.router.find(&t, &p, ctx).route(method) == nil {
					b.Fatal(row.uri)
				}
			}
		})
	}
}
