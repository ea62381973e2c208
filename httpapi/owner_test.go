package httpapi

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// withClientURL sets the URL at which clients reach a node.
func withClientURL(url string) func(*Config) { return func(c *Config) { c.ClientURL = url } }

func TestOwner_IsNamedOnForwardedAnswers(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a", withClientURL("http://a:1")), a.join(t, "b", withClientURL("https://b.example:8443/"))
	const want = "https://b.example:8443"
	for _, row := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"an answer", "POST", things, thingBody, 201},
		{"a refusal", "POST", things, `{"title":5}`, 400},
	} {
		if got := entry.do(t, row.method, row.path, row.body); got.StatusCode != row.status || got.Header.Get(headerOwner) != want || len(got.Header.Values(headerOwner)) != 1 {
			t.Errorf("%s: %d, the owner is %q", row.name, got.StatusCode, got.Header.Values(headerOwner))
		}
		if got := owner.do(t, row.method, row.path, row.body); got.StatusCode != row.status || got.Header.Get(headerOwner) != "" {
			t.Errorf("%s, asked for directly: %d, the owner is %q", row.name, got.StatusCode, got.Header.Get(headerOwner))
		}
	}
	// A path without a workspace has no owner that a client could remember.
	if got := entry.do(t, "GET", "/readyz", ""); got.Header.Get(headerOwner) != "" {
		t.Errorf("/readyz names the owner %q", got.Header.Get(headerOwner))
	}
	// The owner changes, and with the next answer the header.
	a.move("a")
	if got := owner.do(t, "POST", things, thingBody); got.StatusCode != 201 || got.Header.Get(headerOwner) != "http://a:1" {
		t.Errorf("after the move: %d, the owner is %q", got.StatusCode, got.Header.Get(headerOwner))
	}
}

func TestOwner_IsNotNamedByNodesThatWereNotTold(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, _ := a.join(t, "a", withClientURL("http://a:1")), a.join(t, "b")
	if got := entry.do(t, "POST", things, thingBody); got.StatusCode != 201 || got.Header.Get(headerOwner) != "" {
		t.Errorf("%d, the owner is %q", got.StatusCode, got.Header.Get(headerOwner))
	}
}

func TestOwner_IsNamedOnForwardedStreams(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b", withClientURL("http://b:2"))
	f := newFakeStream()
	owner.engine.stream = f
	head := streamHeadOf(t, entry)
	(<-f.started).End()
	if strings.Count(head, headerOwner+": http://b:2\r\n") != 1 {
		t.Errorf("the head is\n%s", head)
	}
}

// The node that serves the workspace counts requests, and the one in between passes on what it says.
func TestRate_IsToldOnForwardedStreams(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b", func(c *Config) { c.Rate = Rate{Requests: 3, Per: time.Hour} })
	f := newFakeStream()
	owner.engine.stream = f
	for _, b := range []*bundle{entry, owner} {
		head := streamHeadOf(t, b)
		(<-f.started).End()
		if strings.Count(head, "RateLimit-Limit: 3\r\n") != 1 || strings.Count(head, "RateLimit-Remaining: ") != 1 || strings.Count(head, "RateLimit-Reset: ") != 1 {
			t.Errorf("the head is\n%s", head)
		}
	}
}

// streamHeadOf opens a stream and reads as far as the head of its answer goes.
func streamHeadOf(t *testing.T, b *bundle) string {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatal(err)
		}
		head = append(head, one...)
	}
	return string(head)
}

// Another node's word reaches clients only in the form that --client-url has.
func TestOwner_OfAnotherFormIsDropped(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ header, want string }{
		{"Switchyard-Owner: http://b:2\r\n", "http://b:2"},
		{"Switchyard-Owner: http://b:2/\r\n", ""},
		{"Switchyard-Owner: javascript:alert(1)\r\n", ""},
		{"Switchyard-Owner: http://user:secret@b:2\r\n", ""},
		{"Switchyard-Owner: http://b:2\r\nSwitchyard-Owner: http://c:3\r\n", ""},
		{"Switchyard-Owner: http://" + strings.Repeat("b", 300) + "\r\n", ""},
	} {
		a := newAtlas("b")
		entry := a.join(t, "a")
		a.haunt(t, "b", func(c net.Conn) {
			readOne(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+row.header+"Content-Length: 2\r\n\r\n{}")
		})
		if got := entry.do(t, "GET", things+"/1", ""); got.StatusCode != 200 || got.Header.Get(headerOwner) != row.want {
			t.Errorf("%.60q: %d, the owner is %q", row.header, got.StatusCode, got.Header.Get(headerOwner))
		}
	}
}

func TestParseClientURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "http://10.0.0.1:8080": "http://10.0.0.1:8080", "https://node-1.example/": "https://node-1.example", "http://[fd00::1]:80": "http://[fd00::1]:80",
	} {
		if got, err := ParseClientURL(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"node-1:8080", "ftp://node-1", "http://", "http://:80", "http://node-1/x", "http://node-1?x", "http://node-1#x", "http://a@node-1", "http://node 1", "HTTP://node-1\r\nX: y", "http://" + strings.Repeat("n", 255)} {
		if got, err := ParseClientURL(text); err == nil {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
}
