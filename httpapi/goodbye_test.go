package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// unreadPort is a listener with TLS. Its clients stop reading at some time.
type unreadPort struct {
	net.Listener
	config *tls.Config
	roots  *tls.Config
	// unread is set when the clients read no more. waits counts the writes since, which wait until their
	// socket is closed.
	unread atomic.Bool
	waits  atomic.Int32
}

func newUnreadPort(t *testing.T) *unreadPort {
	t.Helper()
	pair, roots := certified(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &unreadPort{
		Listener: ln,
		config:   &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		roots:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
}

func (p *unreadPort) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&unreadSocket{TCPConn: c.(*net.TCPConn), port: p, closed: make(chan struct{})}, p.config), nil
}

// request connects to the port, sends a request and reads the head of the answer.
func (p *unreadPort) request(t *testing.T, text string) (*tls.Conn, *http.Response) {
	t.Helper()
	c, err := tls.Dial("tcp", p.Addr().String(), p.roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.NetConn().Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, response
}

// unreadSocket is a socket below TLS, with room for nothing once its client reads no more.
type unreadSocket struct {
	*net.TCPConn
	port   *unreadPort
	closed chan struct{}
	once   sync.Once
}

func (c *unreadSocket) Write(p []byte) (int, error) {
	if !c.port.unread.Load() {
		return c.TCPConn.Write(p)
	}
	c.port.waits.Add(1)
	<-c.closed
	return 0, net.ErrClosed
}

func (c *unreadSocket) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.TCPConn.Close()
}

const streamRequest = "GET " + streamPath + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + token + "\r\n\r\n"

// The loss of a shard ends all its streams, one after another, before the shard is given up.
func TestSecure_TheEndOfAStreamWaitsForNoClient(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*bundle, *unreadPort) error{
		"a client": func(b *bundle, p *unreadPort) error { return b.Serve(p) },
		"a node": func(b *bundle, p *unreadPort) error {
			return b.ServePeers(peerPort{p, func(c net.Conn) net.Conn { return tracked{c.(*tls.Conn)} }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := setup(t), newUnreadPort(t)
			go func() { _ = serve(b, p) }()
			f := newFakeStream()
			b.engine.stream = f
			var all []tracker.Listener
			for range 3 {
				_, response := p.request(t, streamRequest)
				t.Cleanup(func() { _ = response.Body.Close() })
				all = append(all, <-f.started)
			}
			p.unread.Store(true)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, l := range all {
					l.End()
				}
			}()
			testkit.Eventually(t, "all streams have ended", func() bool {
				select {
				case <-ended:
					return p.waits.Load() == int32(len(all))
				default:
					return false
				}
			})
			shutDown(t, b, p)
		})
	}
}

// shutDown stops a server whose clients read nothing, and ends the time for it once all are waited for.
func shutDown(t *testing.T, b *bundle, p *unreadPort) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- b.Shutdown(ctx) }()
	testkit.Eventually(t, "the connections are being closed", func() bool { return p.waits.Load() == 3 })
	cancel()
	testkit.Eventually(t, "the server has stopped", func() bool { return len(down) == 1 })
}

// A server that stops closes idle connections one after another, and waits for no client once its time is up.
func TestSecure_ShutdownWaitsForNoClient(t *testing.T) {
	t.Parallel()
	b, p := setup(t), newUnreadPort(t)
	go func() { _ = b.Serve(p) }()
	for range 3 {
		_, response := p.request(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = response.Body.Close()
	}
	p.unread.Store(true)
	shutDown(t, b, p)
}

// leavingConn is a connection above a socket, whose end takes until its client reads.
type leavingConn struct {
	net.Conn
	reads chan struct{}
}

func (c leavingConn) NetConn() net.Conn { return c.Conn }

func (c leavingConn) Close() error {
	<-c.reads
	return c.Conn.Close() //nolint:wrapcheck // the error of the socket
}

// A server that stops closes its idle connections again and again until no connection is left.
func TestGoodbyes_AConnectionClosedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _ = there.Close() }()
		c := leavingConn{here, make(chan struct{})}
		var g goodbyes
		for range 2 {
			if err := g.close(c); err != nil {
				t.Error(err)
			}
		}
		ended := make(chan struct{})
		go func() { g.end(t.Context()); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("end does not wait for the client")
		default:
		}
		close(c.reads)
		<-ended
	})
}
