package httpapi

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// deadListener accepts connections whose clients have gone after they sent some bytes.
type deadListener struct {
	net.Listener
	sent int // bytes that each client sends
}

func (l deadListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &deadConn{Conn: c, sent: l.sent}, err
}

// deadConn gives all bytes that the client has sent to the first read, and takes none.
type deadConn struct {
	net.Conn
	sent int
}

func (c *deadConn) Read(p []byte) (int, error) {
	if least := c.sent; least > 0 {
		c.sent = 0
		return io.ReadAtLeast(c.Conn, p, least)
	}
	return c.Conn.Read(p)
}

func (*deadConn) Write([]byte) (int, error) { return 0, errors.New("the client is gone") }

// waitingCount returns the number of waiting requests and streams that are counted.
func (b *bundle) waitingCount() (n int) {
	b.waits.mu.Lock()
	defer b.waits.mu.Unlock()
	for _, of := range b.waits.by {
		n += of
	}
	return n
}

// A client sends two requests at once and leaves: the answer to the first can't be sent, so
// fasthttp closes the connection before the stream that answers the second gets it.
func TestDetach_EndsIfTheConnectionFails(t *testing.T) {
	t.Parallel()
	limited := func(c *Config) { c.Limits.AddressWaiting = 10 }
	for name, kind := range map[string]struct {
		path string
		make func(t *testing.T) (b *bundle, ended <-chan struct{})
	}{
		"events": {streamPath, func(t *testing.T) (*bundle, <-chan struct{}) {
			b, f := setup(t, limited), newFakeStream()
			b.engine.stream = f
			return b, f.gone
		}},
		"lines": {linesPath, func(t *testing.T) (*bundle, <-chan struct{}) {
			b, f, closed := setup(t, limited), newFakeLines(io.EOF), make(chan struct{})
			b.engine.lines = f
			go func() { f.closed.Wait(); close(closed) }()
			return b, closed
		}},
		"relayed": {streamPath, func(t *testing.T) (*bundle, <-chan struct{}) {
			a, closed := newAtlas("b"), make(chan struct{})
			b := a.join(t, "a", limited)
			a.haunt(t, "b", func(c net.Conn) {
				defer close(closed)
				readOne(c)
				if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"); err != nil {
					t.Errorf("the head of the stream: %v", err)
				}
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
				_, _ = io.Copy(io.Discard, c)
			})
			return b, closed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ended := kind.make(t)
			sent := strings.Join([]string{
				"GET /healthz HTTP/1.1", "Host: x", "", "GET " + kind.path + " HTTP/1.1", "Host: x",
				"Accept: text/event-stream, application/x-ndjson", "Authorization: Bearer " + token, "", "",
			}, "\r\n")
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = b.Serve(deadListener{ln, len(sent)}) }()
			c, _ := dial(t, ln.Addr().String())
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the source of the stream is closed", func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			testkit.Eventually(t, "nothing is counted", func() bool { return b.waitingCount() == 0 && b.connections() == 0 })
		})
	}
}
