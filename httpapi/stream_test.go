package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

const streamPath = "/w/" + workspaceID + "/stream"

// fakeStream tells its listeners what a test has to say.
type fakeStream struct {
	started chan tracker.Listener
	left    sync.Once
	gone    chan struct{}
}

func newFakeStream() *fakeStream {
	return &fakeStream{started: make(chan tracker.Listener, 1), gone: make(chan struct{})}
}

func (f *fakeStream) Start(l tracker.Listener) { f.started <- l }
func (f *fakeStream) Leave()                   { f.left.Do(func() { close(f.gone) }) }

// listenTo opens a stream, and gives the client's side behind the head of the answer.
func listenTo(t *testing.T, b *bundle) (net.Conn, *bufio.Reader) {
	t.Helper()
	return listenAs(t, b, "Authorization: Bearer "+token)
}

// listenAs is listenTo with other headers than those of a token.
func listenAs(t *testing.T, b *bundle, headers ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nX-Request-Id: mine\r\n"+strings.Join(headers, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReaderSize(c, 512)
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			break
		}
		head.WriteString(line)
	}
	for _, want := range []string{"HTTP/1.1 200 OK\r\n", "Content-Type: text/event-stream\r\n", "Cache-Control: no-store\r\n", "Connection: close\r\n", "X-Request-Id: mine\r\n"} {
		if !strings.Contains(head.String(), want) {
			t.Errorf("the head lacks %q:\n%s", want, &head)
		}
	}
	return c, r
}

func TestStream_SendsAndEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := newFakeStream()
	b.engine.stream = f
	_, r := listenTo(t, b)
	l := <-f.started
	for _, text := range []string{"id: 1\n\n", "id: 2\n\n"} {
		if !l.Send([]byte(text), func() { t.Error("ready, though it was done") }) {
			t.Fatal("a few bytes did not fit")
		}
	}
	l.End()
	l.End()
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "id: 1\n\nid: 2\n\n" {
		t.Errorf("the stream has %q, %v", rest, err)
	}
	<-f.gone
}

// HEAD begins no stream, and has the headers and the status of GET. Without a wish for a stream
// it has those of a page, and at another node than the owner both are the same.
func TestStream_Head(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	nodes := map[string]*bundle{"owner": a.join(t, "b"), "another": a.join(t, "a")}
	for _, node := range nodes {
		node.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: []byte("{}")}, nil
		})
	}
	for name, node := range nodes {
		f := newFakeStream()
		nodes["owner"].engine.stream = f
		head := node.do(t, "HEAD", streamPath, "", "Accept: text/event-stream")
		for header, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Accel-Buffering": "no", "Content-Length": "", "Content-Encoding": ""} {
			if got := head.Header.Get(header); head.StatusCode != 200 || got != want {
				t.Errorf("%s: %d with the %s %q, want %q", name, head.StatusCode, header, got, want)
			}
		}
		select {
		case <-f.gone:
		default:
			t.Errorf("%s: HEAD left a stream", name)
		}
		if len(f.started) != 0 {
			t.Errorf("%s: HEAD began a stream", name)
		}
		if head := node.do(t, "HEAD", streamPath, ""); head.StatusCode != 200 || !strings.HasPrefix(head.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d with the Content-Type %q where no stream is asked for", name, head.StatusCode, head.Header.Get("Content-Type"))
		}
		nodes["owner"].engine.stream = nil
		if head := node.do(t, "HEAD", streamPath, "", "Accept: text/event-stream"); head.StatusCode != 503 {
			t.Errorf("%s: %d where GET is refused", name, head.StatusCode)
		}
	}
}

func TestStream_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := newFakeStream()
	b.engine.stream = f
	_, r := listenTo(t, b)
	<-f.started
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("the stream has %q, %v", rest, err)
	}
	<-f.gone
}

// The credential of the operator's session is the root token, which has no end. The stream ends
// with the session nevertheless, and only that stream.
func TestStream_EndsWithTheOperatorsSession(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken = rootToken })
	ends := time.Now().Truncate(time.Second).Add(time.Second)
	stopped := ends.Add(-500 * time.Millisecond)
	b.now = func() time.Time { return stopped }
	kept := newFakeStream()
	b.engine.stream = kept
	_, other := listenAs(t, b, "Authorization: Bearer "+rootToken)
	l := <-kept.started
	f := newFakeStream()
	b.engine.stream = f
	_, r := listenAs(t, b, operatorCookie(t, b, ends), fromConsole)
	<-f.started
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Fatalf("the stream has %q, %v", rest, err)
	}
	<-f.gone
	l.Send([]byte("id: 1\n\n"), func() {})
	l.End()
	if rest, err := io.ReadAll(other); err != nil || string(rest) != "id: 1\n\n" {
		t.Errorf("the stream of the root token has %q, %v", rest, err)
	}
}

// operatorCookie is a session of the operator as a browser sends it.
func operatorCookie(t *testing.T, b *bundle, ends time.Time) string {
	t.Helper()
	value, err := b.console.cookie.sealRoot(ends)
	if err != nil {
		t.Fatal(err)
	}
	return "Cookie: switchyard-session=" + value
}

// The timer that would end a stream does not outlive the stream.
func TestStream_EndsBeforeTheOperatorsSession(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken = rootToken })
	f := newFakeStream()
	b.engine.stream = f
	_, r := listenAs(t, b, operatorCookie(t, b, time.Now().Add(time.Hour)), fromConsole)
	l := <-f.started
	b.mu.Lock()
	timer := b.streams[l.(ending)]
	b.mu.Unlock()
	if timer == nil {
		t.Fatal("the stream has no timer")
	}
	l.End()
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
	if timer.Stop() {
		t.Error("the timer of a stream that has ended was running")
	}
}

func TestStream_OfWhoHasGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := newFakeStream()
	b.engine.stream = f
	c, _ := listenTo(t, b)
	l := <-f.started
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-f.gone:
			testkit.Eventually(t, "no connection is left", func() bool { return b.connections() == 0 })
			return
		case <-time.After(time.Millisecond):
			l.Send([]byte(": alive\n\n"), func() {})
		}
	}
}

// A part that the connection does not take at once is sent while its client reads,
// however slowly; who does not read is cut off.
func TestStream_OfWhoIsSlow(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		b := setup(t, func(c *Config) {
			if c.WriteTimeout = time.Minute; !reads {
				c.WriteTimeout = 500 * time.Millisecond
			}
		})
		f := newFakeStream()
		b.engine.stream = f
		_, r := listenTo(t, b)
		l := <-f.started
		large := []byte(strings.Repeat("data: x\n", 4<<20))
		ready := make(chan struct{})
		if l.Send(large, func() { close(ready) }) {
			t.Fatal("32 MiB were taken at once")
		}
		if reads {
			if n, err := io.CopyN(io.Discard, r, int64(len(large))); err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			<-ready
			if !l.Send([]byte("id: 2\n\n"), func() {}) {
				t.Error("a few bytes did not fit")
			}
			l.End()
		}
		<-f.gone
		rest, err := io.Copy(io.Discard, r)
		if reads && rest != 7 || !reads && rest >= int64(len(large)) || err != nil {
			t.Errorf("it reads: %t; %d bytes at the end, %v", reads, rest, err)
		}
	}
}

func TestAcceptsStream(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"":                                    false,
		"*/*":                                 false,
		"text/*":                              false,
		"text/html":                           false,
		"text/event-stream":                   true,
		"Text/Event-Stream; charset=utf-8":    true,
		"text/event-stream, */*":              true,
		"*/*, text/event-stream":              false,
		"application/json, text/event-stream": false,
		"application/json;q=0.5,text/event-stream": true,
		"text/event-stream;q=0.5, application/*":   false,
		"text/event-stream;q=0":                    false,
		"text/event-stream;q=x":                    false,
		"text/event-stream;Q=0.3":                  true,
	} {
		if got := acceptsStream([][]byte{[]byte(accept)}); got != want {
			t.Errorf("Accept: %s: %t", accept, got)
		}
	}
	if acceptsStream(nil) || !acceptsStream([][]byte{[]byte("*/*;q=0.1"), []byte("text/event-stream")}) {
		t.Error("of several lines, or none")
	}
}
