package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// decoded returns an answer's content.
func decoded(t testing.TB, header http.Header, body string) string {
	t.Helper()
	var r io.Reader
	var err error
	switch header.Get("Content-Encoding") {
	case "":
		return body
	case "gzip":
		r, err = gzip.NewReader(strings.NewReader(body))
	case "zstd":
		r, err = zstd.NewReader(strings.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(codingWindow))
	default:
		t.Fatalf("Content-Encoding is %q", header.Get("Content-Encoding"))
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// jsonOf returns JSON of a length in bytes.
func jsonOf(length int) string {
	return `{"id":"` + strings.Repeat("word ", length)[:length-len(`{"id":""}`)] + `"}`
}

func TestCodingFor(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "zstd": "zstd", "gzip, zstd": "zstd", "zstd, gzip": "zstd", "gzip, deflate, br, zstd": "zstd", "gzip, deflate, br": "gzip", "br, deflate": "",
		"GZIP": "gzip", "ZStd": "zstd", "x-gzip": "gzip", "*": "zstd", "identity": "", "identity, gzip": "gzip",
		"gzip;q=1, zstd;q=0.9": "gzip", "gzip;q=0.5, zstd;q=0.9": "zstd", "gzip;q=0.5,zstd;q=0.5": "zstd", "gzip; q=0.001": "gzip", "gzip ; Q=1.000": "gzip",
		"gzip;q=0": "", "gzip;q=0.000, zstd;q=0.0": "", "gzip;q=0, *": "zstd", "zstd;q=0, *;q=0.2": "gzip", "zstd;q=0.1, *;q=0.2": "gzip", "*;q=0": "", "*;q=0, gzip": "gzip",
		"identity;q=1, gzip;q=0.5": "", "identity;q=0.5, gzip;q=1": "gzip", "identity;q=0": "", "identity;q=0, gzip": "gzip", "identity;q=0.5, gzip;q=0.6, zstd;q=0.4": "gzip",
		"gzip;q=2": "", "gzip;q=-1": "", "gzip;q=": "", "gzip;q=1.0001": "", "gzip;q=0.1234": "", "gzip;q=1e0": "", "gzip;q=NaN": "", "gzip;q=.5": "", "gzipped": "", "g zip": "", ",,;q=1,": "",
	} {
		var header fasthttp.RequestHeader
		if accept != "" {
			header.Set("Accept-Encoding", accept)
		}
		if got := string(codingNames[codingFor(&header)]); got != want {
			t.Errorf("%q gives %q, want %q", accept, got, want)
		}
	}
	var header fasthttp.RequestHeader
	header.Add("Accept-Encoding", "gzip;q=0.5")
	header.Add("Accept-Encoding", "zstd;q=0.4")
	if got := codingFor(&header); got != codingGzip {
		t.Errorf("two lines give %s", codingNames[got])
	}
}

func TestEncode_FromASizeOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, size := range []int{1023, 1024, 5000, 2 << 20} {
		body := jsonOf(size)
		b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
			return tracker.Reply{Body: append(req.Buf[:0], body...), ETag: `"7"`}, nil
		})
		for _, accept := range []string{"", "gzip", "zstd", "br"} {
			for _, method := range []string{"GET", "POST"} { // a query and a command
				sent := ""
				if method == "POST" {
					sent = thingBody
				}
				a := b.do(t, method, things, sent, "Accept-Encoding: "+accept)
				coding, vary := accept, "Accept-Encoding"
				if accept == "br" || size < 1024 {
					coding = ""
				}
				if size < 1024 {
					vary = ""
				}
				if got := a.Header.Get("Content-Encoding"); got != coding || a.Header.Get("Vary") != vary || a.Header.Get("ETag") != `"7"` {
					t.Errorf("%s of %d bytes, accepting %q: Content-Encoding %q, Vary %q, ETag %s", method, size, accept, got, a.Header.Get("Vary"), a.Header.Get("ETag"))
				}
				if decoded(t, a.Header, a.body) != body || coding != "" && len(a.body) >= size {
					t.Errorf("%s of %d bytes, accepting %q: %d bytes are another content", method, size, accept, len(a.body))
				}
			}
		}
	}
}

func TestEncode_HeadIsAsGet(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	for _, size := range []int{100, 3000} {
		body := []byte(jsonOf(size))
		owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: body, ETag: `"7"`}, nil
		})
		for _, b := range []*bundle{owner, entry} {
			for _, accept := range []string{"identity", "gzip", "zstd"} {
				get, head := b.do(t, "GET", things+"/x", "", "Accept-Encoding: "+accept), b.do(t, "HEAD", things+"/x", "", "Accept-Encoding: "+accept)
				for _, name := range []string{"Content-Encoding", "Vary", "ETag", "Content-Type"} {
					if got, want := head.Header.Get(name), get.Header.Get(name); got != want {
						t.Errorf("%d bytes, accepting %s: %s is %q, with GET %q", size, accept, name, got, want)
					}
				}
				if n := head.Header.Get("Content-Length"); n != "" && n != get.Header.Get("Content-Length") || head.body != "" {
					t.Errorf("%d bytes, accepting %s: Content-Length is %s, with GET %s", size, accept, n, get.Header.Get("Content-Length"))
				}
			}
		}
	}
}

func TestEncode_NotModifiedVaries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.NotModified, ETag: `"7"`}, nil
	})
	a := b.do(t, "GET", things+"/x", "", "Accept-Encoding: gzip")
	if a.StatusCode != 304 || a.Header.Get("Vary") != "Accept-Encoding" || a.Header.Get("Content-Encoding") != "" || a.Header.Get("ETag") != `"7"` {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestEncode_Errors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := strings.Repeat("A long explanation. ", 100)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, tracker.Conflict(want, "Choose another.")
	})
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, "GET "+things+" HTTP/1.1\r\nHost: x\r\nAccept-Encoding: zstd\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 409 || resp.Header.Get("Content-Encoding") != "zstd" || !strings.Contains(decoded(t, resp.Header, string(body)), want) {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestEncode_Files(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for media, want := range map[string]string{
		"image/png": "", "image/jpeg": "", "application/pdf": "", "application/zip": "", "application/octet-stream": "", "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "",
		"text/plain; charset=utf-8": "gzip", "text/csv": "gzip", "image/svg+xml": "gzip", "application/scim+json": "gzip", "application/json": "gzip",
	} {
		b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: []byte(jsonOf(3000)), File: &tracker.File{Name: "f", ContentType: media}}, nil
		})
		a := b.do(t, "GET", things+"/x", "", "Accept-Encoding: gzip")
		if got := a.Header.Get("Content-Encoding"); got != want || (a.Header.Get("Vary") == "") != (want == "") || decoded(t, a.Header, a.body) != jsonOf(3000) {
			t.Errorf("%s: Content-Encoding %q, Vary %q", media, got, a.Header.Get("Vary"))
		}
	}
}

func TestEncode_WhatNeverChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/openapi.json", "/docs"} {
		plain := b.do(t, "GET", path, "")
		for _, accept := range []string{"gzip", "zstd", "zstd"} {
			a := b.do(t, "GET", path, "", "Accept-Encoding: "+accept)
			if a.Header.Get("Content-Encoding") != accept || decoded(t, a.Header, a.body) != plain.body || a.Header.Get("Content-Type") != plain.Header.Get("Content-Type") {
				t.Errorf("%s: %v", path, a.Header)
			}
		}
	}
}

// TestEncode_AtTheEdge makes sure that nodes send each other answers as they are: only
// the node that the client asked knows what the client takes.
func TestEncode_AtTheEdge(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	body := jsonOf(5000)
	owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(body), ETag: `"7"`}, nil
	})
	for _, accept := range []string{"gzip", "zstd", "identity"} {
		got := entry.do(t, "GET", things+"/x", "", "Accept-Encoding: "+accept)
		if coding := got.Header.Get("Content-Encoding"); coding != strings.TrimPrefix(accept, "identity") || decoded(t, got.Header, got.body) != body || len(got.Header.Values("Vary")) != 1 || got.Header.Get("ETag") != `"7"` {
			t.Errorf("%s: %v", accept, got.Header)
		}
	}
	c, err := seat{a, "a"}.Dial(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET "+things+"/x HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	between, err := readAnswer(bufio.NewReader(c), "GET")
	if err != nil {
		t.Fatal(err)
	}
	if between.Header.Get("Content-Encoding") != "" || between.body != body {
		t.Errorf("between nodes: %v", between.Header)
	}
}

// TestEncode_OneConnection sends requests with different codings at once on one
// connection. Its buffers go back and forth between the answers.
func TestEncode_OneConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		var size int
		_, _ = fmt.Sscan(in.(*thingIn).ID, &size)
		return tracker.Reply{Body: append(req.Buf[:0], jsonOf(size)...)}, nil
	})
	sizes := []int{3000, 100, 90_000, 1024, 200_000, 2000, 1023, 70_000}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			var sent bytes.Buffer
			codings := []string{"gzip", "zstd", "identity"}
			for n := range 40 {
				fmt.Fprintf(&sent, "GET %s/%d HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\nAuthorization: Bearer %s\r\n\r\n", things, sizes[(n+worker)%len(sizes)], codings[n%3], token)
			}
			go func() { _, _ = c.Write(sent.Bytes()) }() // the answers tell whether it failed
			r := bufio.NewReader(c)
			for n := range 40 {
				a, err := readAnswer(r, "GET")
				if err != nil {
					t.Error(err)
					return
				}
				if size := sizes[(n+worker)%len(sizes)]; decoded(t, a.Header, a.body) != jsonOf(size) {
					t.Errorf("answer %d is not the one of %d bytes", n, size)
				}
			}
		})
	}
	all.Wait()
}

func TestEncode_Parked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sleepers := sleepy(b, 0)
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, strings.Replace(takeRequest("one"), "\r\n", "\r\nAccept-Encoding: gzip\r\n", 1)); err != nil {
		t.Fatal(err)
	}
	w := <-sleepers
	w.mu.Lock()
	w.body = jsonOf(4000)
	w.mu.Unlock()
	(<-w.armed)()
	a, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	if a.Header.Get("Content-Encoding") != "gzip" || decoded(t, a.Header, a.body) != jsonOf(4000) {
		t.Errorf("%v %q", a.Header, a.body)
	}
}

// BenchmarkEncode is the price of an answer with a page of issues, by its coding.
func BenchmarkEncode(b *testing.B) {
	issue := `{"id":"01931f6e-7a3c-7def-8123-456789abcd%02d","identifier":"ENG-%d","title":"The importer drops rows %d","status":"in_progress","priority":"high","createdAt":"2026-11-20T21:30:00Z"},`
	var list bytes.Buffer
	for n := range 50 {
		fmt.Fprintf(&list, issue, n, n*7, n*31)
	}
	s, err := newServer(Config{Engine: listEngine{body: list.Bytes()}}, fakeRoutes())
	if err != nil {
		b.Fatal(err)
	}
	l := s.newListener(nil, 1)
	for _, accept := range []string{"none", "gzip", "zstd"} {
		b.Run(accept, func(b *testing.B) {
			var ctx fasthttp.RequestCtx
			ctx.Init2(&conn{Conn: &net.TCPConn{}, owner: l}, nil, false) // it returns the buffers
			ctx.Request.Header.SetMethod("GET")
			ctx.Request.SetRequestURI(things)
			ctx.Request.Header.Set("Authorization", "Bearer "+token)
			if accept != "none" {
				ctx.Request.Header.Set("Accept-Encoding", accept)
			}
			b.ReportAllocs()
			b.SetBytes(int64(list.Len()))
			for b.Loop() {
				ctx.Response.Reset()
				s.handle(&ctx)
			}
			b.ReportMetric(float64(len(ctx.Response.Body())), "sent-B")
		})
	}
}

type listEngine struct {
	benchEngine
	body []byte
}

func (e listEngine) Do(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
	return tracker.Reply{Body: append(req.Buf[:0], e.body...)}, nil
}
