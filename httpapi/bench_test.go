package httpapi

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

var nineHundred = append(append([]byte(`{"id":"`), bytes.Repeat([]byte{'x'}, 891)...), `"}`...)

// BenchmarkGetRoute is the price of the way from a request's bytes to a response's,
// beside what an empty fasthttp handler takes for the same body.
func BenchmarkGetRoute(b *testing.B) {
	get := "GET " + things + "/01931f6e-7a3c-7def-8123-456789abcd00 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\nAccept: */*\r\n\r\n"
	b.Run("empty handler", func(b *testing.B) {
		server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("application/json")
			ctx.Response.SetBodyRaw(nineHundred)
		}}
		ln := loopback(b)
		go server.Serve(ln) //nolint:errcheck // ends with the listener
		b.Cleanup(func() { _ = server.Shutdown() })
		roundTrips(b, ln, get, len(nineHundred))
	})
	for name, body := range map[string][]byte{"route": nineHundred, "page": bytes.Repeat(nineHundred, 128)} {
		b.Run(name, func(b *testing.B) {
			s, err := newServer(Config{Engine: benchEngine{body}}, fakeRoutes())
			if err != nil {
				b.Fatal(err)
			}
			ln := loopback(b)
			go s.Serve(ln) //nolint:errcheck // ends with the listener
			b.Cleanup(func() { _ = s.Shutdown(b.Context()) })
			roundTrips(b, ln, get, len(body))
		})
	}
}

type benchEngine struct{ body []byte }

func (benchEngine) Admit(*tracker.Request, *tracker.Op) error { return nil }

func (e benchEngine) Do(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
	return tracker.Reply{Body: append(req.Buf[:0], e.body...), ETag: `"17"`}, nil
}

func (benchEngine) Export(*tracker.Request, *tracker.Op, any) (tracker.Lines, error) {
	panic("not asked for")
}

func (benchEngine) TakeTurn(*tracker.Request, bool) (func(), error) { return func() {}, nil }

func (benchEngine) Listen(*tracker.Request, *tracker.Op, any) (tracker.Stream, error) {
	panic("not run")
}

func (e benchEngine) Begin(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, tracker.Waiting, error) {
	reply, err := e.Do(req, op, in)
	return reply, nil, err
}

func loopback(b *testing.B) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return ln
}

// roundTrips sends a request over and over, sixteen to a write, so that the
// servers' work is measured more than the kernel's.
func roundTrips(b *testing.B, ln net.Listener, request string, size int) {
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	const pipelined = 16
	out := bytes.Repeat([]byte(request), pipelined)
	var resp fasthttp.Response
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%pipelined == 0 {
			if _, err := c.Write(out); err != nil {
				b.Fatal(err)
			}
		}
		if err := resp.Read(r); err != nil {
			b.Fatal(err)
		}
	}
	if len(resp.Body()) != size {
		b.Fatalf("got %d %s", resp.StatusCode(), resp.Body())
	}
}

// BenchmarkBindCreateIssue binds the body of an ordinary creation.
func BenchmarkBindCreateIssue(b *testing.B) {
	p, err := newPlan(tracker.CreateIssue, []string{workspaceParam})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"title":"The importer drops rows with quoted commas","description":"` + strings.Repeat("Steps to reproduce. ", 20) +
		`","status":"todo","priority":"high","labelIds":["bug","importer"],"assigneeId":"01931f6e-7a3c-7def-8123-456789abcdef","estimate":3}`)
	src := source{names: nil, body: body, query: []byte("dedupe=warn")}
	var bi binder
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := bi.bind(p, tracker.CreateIssue.New(), &src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSessionTools is the price of a message to a session's tools, from its bytes
// to those of the answer, beside the same operation at its own path: what the protocol's
// library costs.
func BenchmarkSessionTools(b *testing.B) {
	s, err := newServer(Config{Engine: benchEngine{nineHundred}}, []Route{
		{"GET", "/w/{organizationId}/issues/{id}", tracker.IssueByID},
		{"POST", "/w/{organizationId}/sessions/{id}/mcp", opSessionTools},
	})
	if err != nil {
		b.Fatal(err)
	}
	ln := loopback(b)
	go s.Serve(ln) //nolint:errcheck // ends with the listener
	b.Cleanup(func() { _ = s.Shutdown(b.Context()) })
	head := " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\n"
	post := func(message string) string {
		return "POST " + sessionTools + head + "Content-Length: " + itoa(len(message)) + "\r\n\r\n" + message
	}
	for _, row := range []struct{ name, request string }{
		{"at its own path", "GET /w/" + workspaceID + "/issues/01931f6e-7a3c-7def-8123-456789abcd00" + head + "\r\n"},
		{"read_issue", post(callOf("read_issue", `{}`))},
		{"log", post(callOf("log", `{"type":"thought","message":"The importer drops rows with quoted commas."}`))},
		{"tools list", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)},
		{"notification", post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)},
	} {
		b.Run(row.name, func(b *testing.B) {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			r := bufio.NewReader(c)
			var resp fasthttp.Response
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write([]byte(row.request)); err != nil {
					b.Fatal(err)
				}
				if err := resp.Read(r); err != nil {
					b.Fatal(err)
				}
			}
			if resp.StatusCode() >= 300 {
				b.Fatalf("got %d %s", resp.StatusCode(), resp.Body())
			}
		})
	}
}

// BenchmarkFraming is the price of looking at a request's bytes before fasthttp does.
func BenchmarkFraming(b *testing.B) {
	head := " " + things + "/01931f6e-7a3c-7def-8123-456789abcd00 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\nAccept: */*\r\n"
	for name, request := range map[string]string{
		"get":    "GET" + head + "\r\n",
		"post":   "POST" + head + "Content-Length: 1024\r\n\r\n" + strings.Repeat(" ", 1024),
		"chunks": "POST" + head + "Transfer-Encoding: chunked\r\n\r\n400\r\n" + strings.Repeat(" ", 1024) + "\r\n0\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			var f framing
			sent := []byte(request)
			b.ReportAllocs()
			for b.Loop() {
				if _, fault := f.scan(sent); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}
