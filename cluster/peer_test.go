package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// peerNetwork is peers that find each other by name.
type peerNetwork struct {
	t     testing.TB
	mu    sync.Mutex
	at    map[string]string
	hangs chan struct{} // gets one for each request "hang" that has arrived
}

func newPeerNetwork(t testing.TB) *peerNetwork {
	return &peerNetwork{t: t, at: map[string]string{}, hangs: make(chan struct{}, 1)}
}

func (w *peerNetwork) resolve(node string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	addr, ok := w.at[node]
	return addr, ok
}

func (w *peerNetwork) add(node, cluster string, secure *peerTLS) *peerPort {
	w.t.Helper()
	return w.addWithKey(node, cluster, secure, nil)
}

func (w *peerNetwork) addWithKey(node, cluster string, secure *peerTLS, key []byte) *peerPort {
	w.t.Helper()
	return w.addWith(node, cluster, peerConfig{TLS: secure, Keys: [][]byte{key}})
}

func (w *peerNetwork) addWith(node, cluster string, cfg peerConfig) *peerPort {
	w.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.at[node] = ln.Addr().String()
	w.mu.Unlock()
	cfg.Listener, cfg.Resolve, cfg.Logger = ln, w.resolve, quiet()
	if cfg.leastLimit == 0 {
		cfg.leastLimit = 5 * time.Minute // other tests may have the processors
	}
	cfg.Format = func() storage.Format { return storage.FormatNewest }
	cfg.Self = func() peerSelf { return peerSelf{cluster, node, node + "-instance"} }
	p := newPeerPort(cfg)
	p.handle(rpcReport, func(_ context.Context, from string, body []byte) ([]byte, error) {
		return append([]byte(node+" to "+from+": "), body...), nil
	})
	p.handle(rpcCall, func(ctx context.Context, _ string, body []byte) ([]byte, error) {
		switch string(body) {
		case "fail":
			return nil, errors.New("as asked")
		case "panic":
			panic("as asked")
		case "hang":
			w.hangs <- struct{}{}
			<-ctx.Done()
		}
		return body, nil
	})
	p.handle(rpcJoin, func(_ context.Context, from string, _ []byte) ([]byte, error) {
		return []byte("from <" + from + ">"), nil
	})
	p.run()
	w.t.Cleanup(p.close)
	return p
}

func TestPeerPort_Calls(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	a := w.add("a", "one", nil)
	w.add("b", "one", nil)
	ctx := t.Context()
	for range 3 { // the later ones over the connection of the first
		if got, err := a.call(ctx, "b", rpcReport, []byte("hello")); err != nil || string(got) != "b to a: hello" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	big := make([]byte, maxFrame-1)
	if got, err := a.call(ctx, "b", rpcCall, big); err != nil || len(got) != len(big) {
		t.Fatalf("the largest request: %d bytes, %v", len(got), err)
	}
	if _, err := a.call(ctx, "b", rpcCall, make([]byte, maxFrame)); !errors.Is(err, errNotSent) {
		t.Errorf("too large: %v", err)
	}
	var rpcErr *rpcError
	if _, err := a.call(ctx, "b", rpcCall, []byte("fail")); !errors.As(err, &rpcErr) || rpcErr.message != "as asked" {
		t.Errorf("a failure: %v", err)
	}
	if _, err := a.call(ctx, "b", rpcCall, []byte("panic")); !errors.As(err, &rpcErr) {
		t.Errorf("a panic: %v", err)
	}
	if _, err := a.call(ctx, "b", rpcHost, nil); !errors.As(err, &rpcErr) || !strings.Contains(err.Error(), "version") {
		t.Errorf("an unknown kind: %v", err)
	}
	if _, err := a.call(ctx, "nobody", rpcCall, nil); !errors.Is(err, errNotSent) {
		t.Errorf("an unknown node: %v", err)
	}
	abandoned, abandon := context.WithCancel(ctx)
	defer abandon()
	go func() {
		<-w.hangs
		abandon()
	}()
	if _, err := a.call(abandoned, "b", rpcCall, []byte("hang")); err == nil || errors.Is(err, errNotSent) {
		t.Errorf("an abandoned call: %v", err)
	}
	if got, err := a.call(ctx, "b", rpcCall, []byte("after")); err != nil || string(got) != "after" {
		t.Errorf("after an abandoned call: %q, %v", got, err)
	}
}

func TestPeerPort_Refusals(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	a := w.add("a", "one", nil)
	b := w.add("b", "two", nil)
	w.add("new", "", nil)
	w.at["ghost"] = w.at["b"]
	w.at["closed"] = "127.0.0.1:1"
	for node, want := range map[string]string{
		"b": "not belong to cluster one", "new": "not joined", "ghost": "is not there", "closed": "refused",
	} {
		_, err := a.call(t.Context(), node, rpcCall, nil)
		if !errors.Is(err, errNotSent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", node, err, want)
		}
	}
	// A node that has not joined may ask to join, and nothing else.
	c := w.add("c", "", nil)
	if got, err := c.callAddr(t.Context(), w.at["b"], rpcJoin, nil); err != nil || string(got) != "from <>" {
		t.Errorf("join: %q, %v", got, err)
	}
	if _, err := c.callAddr(t.Context(), w.at["b"], rpcCall, nil); err == nil || !strings.Contains(err.Error(), "not joined") {
		t.Errorf("call before joining: %v", err)
	}
	// Nodes that form a cluster together talk before there is one.
	if got, err := c.callAddr(t.Context(), w.at["new"], rpcJoin, nil); err != nil || string(got) != "from <>" {
		t.Errorf("join among nodes without a cluster: %q, %v", got, err)
	}
	// Bytes that are no hello end the connection and cost nothing.
	for _, garbage := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "C\xff\xff\xff\xff", "C\x00\x00\x00\x02{]", "X\x00\x00\x00\x02{}"} {
		conn, err := net.Dial("tcp", w.at["b"])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", garbage, err)
		}
		_ = conn.Close()
	}
	if got, err := b.callAddr(t.Context(), w.at["b"], rpcCall, []byte("x")); err == nil {
		t.Errorf("a node that takes itself for another one: %q", got)
	}
}

func TestPeerPort_HTTPConnections(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	a, b := w.add("a", "one", nil), w.add("b", "one", nil)
	go func() {
		conn, err := b.httpListener().Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
		}
	}()
	conn, err := a.dialHTTP(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "ping" {
		t.Fatalf("%q, %v", buf, err)
	}
	// A cut ends waiting requests at once.
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(buf)
		read <- err
	}()
	a.disconnect("b")
	if err := <-read; err == nil {
		t.Error("a connection that was cut off went on")
	}
}

func TestPeerPort_RaftStreams(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	// A node of an older version, since entries go by another connection otherwise.
	a, b := w.add("a", "one", nil), w.addWith("b", "one", peerConfig{Keys: [][]byte{nil}, old: true})
	from, to := a.transportFor(3), b.transportFor(3)
	defer func() {
		_ = from.(raft.WithClose).Close()
		_ = to.(raft.WithClose).Close()
	}()
	if got := from.LocalAddr(); got != "a" {
		t.Errorf("the transport's address is %q", got)
	}
	go func() {
		for rpc := range to.Consumer() {
			switch c := rpc.Command.(type) {
			case *raft.AppendEntriesRequest:
				rpc.Respond(&raft.AppendEntriesResponse{Term: c.Term, Success: true, LastLog: uint64(len(c.Entries))}, nil)
			case *raft.InstallSnapshotRequest:
				n, err := io.Copy(io.Discard, rpc.Reader)
				rpc.Respond(&raft.InstallSnapshotResponse{Success: n == c.Size}, err)
			}
		}
	}()
	var appended raft.AppendEntriesResponse
	// As large as batches that are merged. Under the race detector a larger one takes longer than a
	// request may.
	entries := []*raft.Log{{Index: 1, Term: 7, Data: make([]byte, 4<<20)}}
	if err := from.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 7, Entries: entries}, &appended); err != nil || !appended.Success || appended.LastLog != 1 {
		t.Errorf("append: %+v, %v", appended, err)
	}
	var installed raft.InstallSnapshotResponse
	size := int64(5 << 20)
	if err := from.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{Size: size}, &installed, io.LimitReader(rand.Reader, size)); err != nil || !installed.Success {
		t.Errorf("install: %+v, %v", installed, err)
	}
	// A shard that the other node does not hold.
	other := a.transportFor(4)
	defer func() { _ = other.(raft.WithClose).Close() }()
	if err := other.AppendEntries("b", "b", &raft.AppendEntriesRequest{}, &appended); err == nil {
		t.Error("entries for a shard that is not there were taken")
	}
}

// authority makes certificates.
func authority(t *testing.T, name string) (load func(node string) *peerTLS) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(root)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(own)
	return func(node string) *peerTLS {
		leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: node}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, own.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return newPeerTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: own}}, RootCAs: pool})
	}
}

func TestPeerPort_TLS(t *testing.T) {
	t.Parallel()
	ours, theirs := authority(t, "ours"), authority(t, "theirs")
	w := newPeerNetwork(t)
	a := w.add("a", "one", ours("a"))
	w.add("b", "one", ours("b"))
	w.add("foreign", "one", theirs("foreign"))
	w.add("plain", "one", nil)
	if got, err := a.call(t.Context(), "b", rpcReport, []byte("x")); err != nil || string(got) != "b to a: x" {
		t.Fatalf("%q, %v", got, err)
	}
	for _, node := range []string{"foreign", "plain"} {
		if _, err := a.call(t.Context(), node, rpcReport, nil); !errors.Is(err, errNotSent) || !strings.Contains(err.Error(), "--cluster-ca") {
			t.Errorf("%s: %v", node, err)
		}
	}
}

// A connection of the peer port says whether there is TLS between it and its socket, on both sides.
func TestPeerPort_PlainConnections(t *testing.T) {
	t.Parallel()
	ours := authority(t, "ours")
	for _, secure := range []bool{false, true} {
		w := newPeerNetwork(t)
		var first, second *peerTLS
		if secure {
			first, second = ours("a"), ours("b")
		}
		a, b := w.add("a", "one", first), w.add("b", "one", second)
		accepted := make(chan net.Conn, 1)
		go func() {
			conn, err := b.httpListener().Accept()
			if err != nil {
				t.Error(err)
			}
			accepted <- conn
		}()
		dialed, err := a.dialHTTP(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		for _, conn := range []net.Conn{dialed, <-accepted} {
			if plain := conn.(interface{ Plain() bool }).Plain(); plain == secure {
				t.Errorf("with TLS: %t; a connection says that it is plain: %t", secure, plain)
			}
		}
	}
}

func BenchmarkPeerPort_Call(b *testing.B) {
	w := newPeerNetwork(b)
	a := w.add("a", "one", nil)
	w.add("b", "one", nil)
	body := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.call(b.Context(), "b", rpcCall, body); err != nil {
			b.Fatal(err)
		}
	}
}
