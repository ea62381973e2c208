package httpapi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// certified returns a certificate for the loopback address, and the authorities that vouch for it.
func certified(t *testing.T) (pair tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// secured is a server whose clients use TLS, and a way to connect to it.
func secured(t *testing.T, adjust ...func(*Config)) (b *bundle, connect func() *tls.Conn) {
	t.Helper()
	pair, roots := certified(t)
	b = setup(t, append(adjust, func(c *Config) { c.Secure = true })...)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = b.Serve(tls.NewListener(plain, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}))
	}()
	return b, func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", plain.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func TestSecure_RequestsAndLargeAnswers(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	large := jsonOf(3 << 20)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(large)}, nil
	})
	c := connect()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q", got)
	}
	r := bufio.NewReader(c)
	for _, accept := range []string{"identity", "gzip"} {
		if _, err := io.WriteString(c, "GET "+things+" HTTP/1.1\r\nHost: x\r\nAccept-Encoding: "+accept+"\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		a, err := readAnswer(r, "GET")
		if err != nil || decoded(t, a.Header, a.body) != large {
			t.Fatalf("%v: %d bytes", err, len(a.body))
		}
	}
	// Bytes that HTTP forbids are found inside of TLS, too.
	if _, err := io.WriteString(c, "GET "+things+" HTTP/1.1\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if a, err := readAnswer(r, "GET"); err != nil || a.StatusCode != 400 {
		t.Errorf("%v %v", a, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

func TestSecure_WaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	sleepers := sleepy(b, 1)
	c := connect()
	r := bufio.NewReader(c)
	for _, id := range []string{"one", "two"} {
		if _, err := io.WriteString(c, takeRequest(id)); err != nil {
			t.Fatal(err)
		}
		w := <-sleepers
		(<-w.armed)()
		(<-w.armed)()
		wantBody(t, r, 200, `{"id":"`+id+`"}`)
	}
}

// TestSecure_WhoHasGone has a client leave while its request waits: the answer would be
// work that nobody does.
func TestSecure_WhoHasGone(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	sleepers := sleepy(b, 1)
	c := connect()
	if _, err := io.WriteString(c, takeRequest("gone")); err != nil {
		t.Fatal(err)
	}
	w := <-sleepers
	wake := <-w.armed
	if w.req.Gone() {
		t.Error("a client that waits is gone")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the client to be gone", w.req.Gone)
	wake()
}

func TestSecure_Streams(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	f := newFakeStream()
	b.engine.stream = f
	c := connect()
	if _, err := io.WriteString(c, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	l := <-f.started
	ready := make(chan struct{})
	text := strings.Repeat("id: 1\n\n", 20_000)
	if l.Send([]byte(text), func() { close(ready) }) {
		t.Error("TLS can't write without waiting")
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != text {
		t.Errorf("%v", err)
	}
	<-ready
	l.End()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

// peerPort is a listener of connections as the cluster gives those of nodes.
type peerPort struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (p peerPort) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return p.wrap(c), nil
}

// plainPeer is a connection of a node without TLS, below the cluster's own type.
type plainPeer struct{ *net.TCPConn }

func (plainPeer) Plain() bool { return true }

// Another node gets a stream within TLS: the socket below it takes no bytes past TLS. Without TLS
// the stream writes to the socket at once.
func TestSecure_StreamsToNodes(t *testing.T) {
	t.Parallel()
	pair, roots := certified(t)
	for _, row := range []struct {
		name string
		wrap func(net.Conn) net.Conn
		dial func(addr string) (net.Conn, error)
		raw  bool
	}{
		{
			"TLS",
			func(c net.Conn) net.Conn {
				return tracked{tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}})}
			},
			func(addr string) (net.Conn, error) {
				return tls.Dial("tcp", addr, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots})
			},
			false,
		},
		{
			"plain",
			func(c net.Conn) net.Conn { return plainPeer{c.(*net.TCPConn)} },
			func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) },
			true,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f := newFakeStream()
			b.engine.stream = f
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = b.ServePeers(peerPort{ln, row.wrap}) }()
			c, err := row.dial(ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			l := <-f.started
			ready := make(chan struct{})
			if done := l.Send([]byte("id: 1\n\n"), func() { close(ready) }); done {
				close(ready)
			} else if row.raw {
				t.Error("the socket did not get the event at once")
			}
			<-ready
			l.End()
			if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "\r\n\r\nid: 1\n\n") {
				t.Errorf("the stream has %q, %v", all, err)
			}
		})
	}
}

func TestSecure_ShutdownCutsOff(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	sleepy(b, 1<<20)
	for range 3 {
		if _, err := io.WriteString(connect(), takeRequest("x")); err != nil {
			t.Fatal(err)
		}
	}
	connect()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestSecure_OwnAddress(t *testing.T) {
	t.Parallel()
	b, connect := secured(t)
	b.engine.set(nil)
	c := connect()
	if _, err := io.WriteString(c, "GET /.well-known/oauth-authorization-server HTTP/1.1\r\nHost: localhost:7\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	a, err := readAnswer(bufio.NewReader(c), "GET")
	if err != nil || !strings.Contains(a.body, `"issuer":"https://localhost:7"`) {
		t.Errorf("%v %v", a, err)
	}
}
