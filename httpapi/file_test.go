package httpapi

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// An answer that is a file goes out as its bytes, with what keeps a browser from
// making more of them; from another node just the same, however large.
func TestFile_Headers(t *testing.T) {
	t.Parallel()
	content := "\x89PNG\x00\xff" + strings.Repeat("\x00\xfe", 5<<19)
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	owner.engine.set(func(_ *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		reply := tracker.Reply{Body: []byte(content), ETag: `"sum"`, File: &tracker.File{Name: "a b\"\r\n.png", ContentType: "image/png"}}
		if in.(*thingIn).IfNoneMatch == `"sum"` {
			reply.Outcome, reply.Body = tracker.NotModified, nil
		}
		return reply, nil
	})
	for name, node := range map[string]*bundle{"owner": owner, "another": entry} {
		for _, row := range []struct {
			header, body string
			status       int
		}{{"X-A: b", content, 200}, {`If-None-Match: "sum"`, "", 304}, {"X-A: b", content, 200}} {
			got := node.do(t, "GET", things+"/x", "", row.header)
			if got.StatusCode != row.status || got.body != row.body {
				t.Fatalf("%s: %d with %d bytes, want %d with %d", name, got.StatusCode, len(got.body), row.status, len(row.body))
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options":  "nosniff",
				"Content-Security-Policy": "default-src 'none'; sandbox",
				"Cache-Control":           "private, max-age=31536000, immutable",
				"Etag":                    `"sum"`,
				"Content-Disposition":     "inline; filename*=utf-8''a%20b%22%0D%0A.png",
			} {
				if values := got.Header.Values(header); len(values) != 1 || values[0] != want {
					t.Errorf("%s: %s is %q, want %q", name, header, values, want)
				}
			}
			if kind := got.Header.Get("Content-Type"); row.status == 200 && kind != "image/png" {
				t.Errorf("%s: it is %s", name, kind)
			}
		}
	}
}

// A long name is left out of the header, which other nodes and clients could not read.
func TestFile_LongName(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	for _, row := range []struct{ name, disposition string }{
		{strings.Repeat("\U0001F600", 255), "inline; filename*=utf-8''" + strings.Repeat("%F0%9F%98%80", 255)},
		{strings.Repeat("a", 20<<10), "inline"},
	} {
		owner.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: []byte("x"), File: &tracker.File{Name: row.name, ContentType: "image/png"}}, nil
		})
		for at, node := range map[string]*bundle{"owner": owner, "another": entry} {
			got := node.do(t, "GET", things+"/x", "")
			if got.StatusCode != 200 || got.body != "x" || got.Header.Get("Content-Disposition") != row.disposition {
				t.Errorf("%s: %d %.100s with a name of %d bytes: %.100s", at, got.StatusCode, got.body, len(row.name), got.Header.Get("Content-Disposition"))
			}
		}
	}
}

const largePath = "/w/" + workspaceID + "/large"

// largeBody is a body above the usual bound.
func largeBody() string { return `{"title":"t","any":"` + strings.Repeat("x", 3<<19) + `"}` }

func largeHead(body string) string {
	return "POST " + largePath + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n"
}

// The time to answer a large request begins when it has arrived.
func TestLargeBody_TimeBeginsWhenItIsThere(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	timeout := func(c *Config) { c.RequestTimeout = time.Minute }
	entry, owner := a.join(t, "a", timeout), a.join(t, "b", timeout)
	body := largeBody()
	for name, node := range map[string]*bundle{"owner": owner, "another": entry} {
		c, err := net.Dial("tcp", node.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, largeHead(body)+body[:len(body)-1]); err != nil {
			t.Fatal(err)
		}
		// That is more than fits between the two, so the request has begun.
		arrived := time.Now()
		if _, err := io.WriteString(c, body[len(body)-1:]); err != nil {
			t.Fatal(err)
		}
		got, err := readAnswer(bufio.NewReader(c), "POST")
		if err != nil || got.StatusCode != 201 {
			t.Fatalf("%s: %v %+v", name, err, got)
		}
		_ = c.Close()
		// The way to another node takes a little, and milliseconds are cut.
		if req, _, _ := owner.engine.seen(); req.Deadline.Before(arrived.Add(time.Minute - 2*time.Millisecond)) {
			t.Errorf("%s: due %s after it had arrived", name, req.Deadline.Sub(arrived))
		}
	}
}
