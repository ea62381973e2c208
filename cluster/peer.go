package cluster

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"switchyard/storage"
)

// peers is the node's peer port: one listener on which other nodes open streams
// for Raft, forwarded HTTP requests and control requests, and the connections this
// node opens to theirs.
//
// A connection begins with its kind, one byte, and the hello of who dialed; the
// other side accepts it or says why not. What follows is the kind's own affair.
type peers struct {
	cfg      peerConfig
	handlers map[rpcKind]rpcHandler
	forward  *handoff // accepted connections with forwarded requests
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]peerConn // both ways, Raft's streams too
	streams map[storage.Shard]*handoff
	idle    map[string][]net.Conn // control connections to nodes, by name
}

// peerConn says whose connection it is.
type peerConn struct {
	kind     byte
	node     string
	shard    storage.Shard // of Raft's streams
	accepted bool
}

// peerConfig is what the peer port needs.
type peerConfig struct {
	Listener net.Listener // peers closes it
	TLS      *peerTLS     // nil: plain
	// Self is who this node is; its cluster is empty before it has joined.
	Self func() peerSelf
	// Resolve gives the peer address of a node.
	Resolve func(node string) (addr string, ok bool)
	Logger  *slog.Logger
}

// peerSelf is who a node is.
type peerSelf struct{ cluster, node, instance string }

// Kinds of connections, their first byte. Never change or reuse one.
const (
	kindRaft    byte = 'R'
	kindHTTP    byte = 'H'
	kindControl byte = 'C'
)

const (
	peerVersion = 1
	maxHello    = 4 << 10
	// helloTimeout bounds the TLS handshake and the hello, each.
	helloTimeout = 5 * time.Second
	dialTimeout  = time.Second
	// maxAccepted bounds the connections others may hold open here.
	maxAccepted = 8192
)

// peerHello is what the dialing side says first.
type peerHello struct {
	Version  int    `json:"version"`
	Cluster  string `json:"cluster"`
	From     string `json:"from"`
	Instance string `json:"instance"`
	To       string `json:"to"`
	Shard    int    `json:"shard"`
}

// peerWelcome is the answer; Refused says why the connection is not taken.
type peerWelcome struct {
	Refused string `json:"refused,omitempty"`
}

func newPeers(cfg peerConfig) *peers {
	p := &peers{
		cfg:      cfg,
		handlers: map[rpcKind]rpcHandler{},
		forward:  newHandoff(cfg.Listener.Addr()),
		conns:    map[net.Conn]peerConn{},
		streams:  map[storage.Shard]*handoff{},
		idle:     map[string][]net.Conn{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// handle sets who answers a kind of control request; before run.
func (p *peers) handle(kind rpcKind, h rpcHandler) { p.handlers[kind] = h }

// run accepts connections until close.
func (p *peers) run() { p.running.Go(p.accept) }

func (p *peers) accept() {
	for {
		conn, err := p.cfg.Listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.cfg.Logger.Warn("accept a peer's connection", "error", err)
			select { // out of descriptors, say
			case <-time.After(100 * time.Millisecond):
				continue
			case <-p.ctx.Done():
				return
			}
		}
		if !p.hold(conn, peerConn{accepted: true}) {
			_ = conn.Close()
			continue
		}
		p.running.Go(func() { p.greet(conn) })
	}
}

// hold notes an open connection; false when there is no place for it.
func (p *peers) hold(conn net.Conn, whose peerConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || whose.accepted && len(p.conns) >= maxAccepted {
		return false
	}
	p.conns[conn] = whose
	return true
}

func (p *peers) drop(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
}

// greet learns who dialed and hands the connection on.
func (p *peers) greet(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	tcp := conn
	if t := p.cfg.TLS; t != nil {
		secure := tls.Server(conn, t.server)
		if err := secure.HandshakeContext(p.ctx); err != nil {
			p.cfg.Logger.Warn("a peer's connection was refused", "from", tcp.RemoteAddr().String(), "error", tlsError(err))
			p.drop(tcp)
			return
		}
		conn = secure
	}
	kind, hello, err := readHello(conn)
	if err != nil {
		p.cfg.Logger.Debug("a connection that is no peer's", "from", tcp.RemoteAddr().String(), "error", err)
		p.drop(tcp)
		return
	}
	if why := p.refuse(kind, &hello); why != "" {
		p.cfg.Logger.Warn("a peer's connection was refused", "from", tcp.RemoteAddr().String(), "node", hello.From, "reason", why)
		_ = writeFrame(conn, peerWelcome{Refused: why})
		p.drop(tcp)
		return
	}
	if err := writeFrame(conn, peerWelcome{}); err != nil {
		p.drop(tcp)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p.mu.Lock()
	if _, open := p.conns[tcp]; !open {
		p.mu.Unlock()
		return // closed meanwhile
	}
	delete(p.conns, tcp)
	p.conns[conn] = peerConn{kind: kind, node: hello.From, shard: storage.Shard(hello.Shard), accepted: true}
	streams := p.streams[storage.Shard(hello.Shard)]
	p.mu.Unlock()
	switch held := (&heldConn{Conn: conn, peers: p}); kind {
	case kindControl:
		p.serveControl(conn, hello)
	case kindHTTP:
		p.forward.give(held)
	case kindRaft:
		if streams == nil {
			p.drop(conn) // no replica here (any more); the dialer finds out by the cluster's state
			return
		}
		streams.give(held)
	}
}

// refuse says why a connection is not for this node; empty when it is.
func (p *peers) refuse(kind byte, h *peerHello) string {
	self := p.cfg.Self()
	joins := kind == kindControl && h.Cluster == ""
	switch {
	case kind != kindRaft && kind != kindHTTP && kind != kindControl:
		return fmt.Sprintf("this node does not know connections of kind %q: do all nodes run the same version?", kind)
	case h.Version != peerVersion:
		return fmt.Sprintf("this node speaks version %d of the peer protocol, not %d: upgrade the older node", peerVersion, h.Version)
	case h.To != "" && h.To != self.node:
		return fmt.Sprintf("node %q is not here, this address belongs to node %q: check --advertise of both", h.To, self.node)
	case self.cluster == "" && !joins: // nodes without a cluster may form one together
		return fmt.Sprintf("node %q has not joined a cluster yet", self.node)
	case !joins && h.Cluster != self.cluster:
		return fmt.Sprintf("this node belongs to cluster %s and the caller to %s: give --join addresses of the caller's own cluster", self.cluster, h.Cluster)
	case h.From == self.node && !joins:
		return fmt.Sprintf("the name %q is this node's own: give every node a name of its own (--node-name)", h.From)
	}
	return ""
}

// dial opens a connection of a kind to where a node listens. An error wraps
// errNotSent.
func (p *peers) dial(ctx context.Context, kind byte, node, addr string, shard storage.Shard) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	fail := func(err error) error {
		return fmt.Errorf("%w: dial %s at %s: %w", errNotSent, node, addr, err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fail(err)
	}
	tcp := conn
	// What ends the context ends the hello too.
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	if t := p.cfg.TLS; t != nil {
		secure := tls.Client(conn, t.client)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = tcp.Close()
			return nil, fail(tlsError(err))
		}
		conn = secure
	}
	self := p.cfg.Self()
	hello := peerHello{Version: peerVersion, Cluster: self.cluster, From: self.node, Instance: self.instance, To: node, Shard: int(shard)}
	if err := p.hail(conn, kind, &hello); err != nil {
		_ = tcp.Close()
		return nil, fail(err)
	}
	if !stop() {
		_ = tcp.Close()
		return nil, fail(ctx.Err())
	}
	if !p.hold(conn, peerConn{kind: kind, node: node, shard: shard}) {
		_ = tcp.Close()
		return nil, fail(net.ErrClosed)
	}
	return conn, nil
}

// hail says hello and waits to be welcome.
func (p *peers) hail(conn net.Conn, kind byte, hello *peerHello) error {
	frame, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	first := append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(frame))), frame...)
	if _, err := conn.Write(first); err != nil {
		return err
	}
	var welcome peerWelcome
	if err := readFrame(conn, &welcome); err != nil {
		return err
	}
	if welcome.Refused != "" {
		return &refusedError{welcome.Refused}
	}
	return nil
}

// refusedError is why another node does not take this one's connections.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return "refused: " + e.why }

// resolve gives where a node listens.
func (p *peers) resolve(node string) (string, error) {
	addr, ok := p.cfg.Resolve(node)
	if !ok {
		return "", fmt.Errorf("%w: the address of node %q is not known", errNotSent, node)
	}
	return addr, nil
}

// dialHTTP opens a connection for forwarded requests.
func (p *peers) dialHTTP(ctx context.Context, node string) (net.Conn, error) {
	addr, err := p.resolve(node)
	if err != nil {
		return nil, err
	}
	conn, err := p.dial(ctx, kindHTTP, node, addr, 0)
	if err != nil {
		return nil, err
	}
	return &heldConn{Conn: conn, peers: p}, nil
}

// httpListener yields the connections with forwarded requests.
func (p *peers) httpListener() net.Listener { return p.forward }

// cutOff closes the connections on which requests wait for a node that does not
// answer. Raft's own streams are left to Raft.
func (p *peers) cutOff(node string) {
	p.mu.Lock()
	delete(p.idle, node)
	p.mu.Unlock()
	p.cut(func(whose peerConn) bool { return whose.node == node && whose.kind != kindRaft })
}

// cut closes the connections that are chosen.
func (p *peers) cut(chosen func(peerConn) bool) {
	p.mu.Lock()
	var cut []net.Conn
	for conn, whose := range p.conns {
		if chosen(whose) {
			cut = append(cut, conn)
			delete(p.conns, conn)
		}
	}
	p.mu.Unlock()
	for _, conn := range cut {
		_ = conn.SetDeadline(time.Unix(1, 0)) // wakes who waits, also where TLS says goodbye first
		_ = conn.Close()
	}
}

// close ends every connection and waits for what served them.
func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	_ = p.cfg.Listener.Close()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.idle)
	streams := p.streams
	p.streams = map[storage.Shard]*handoff{}
	p.mu.Unlock()
	_ = p.forward.Close()
	for _, s := range streams {
		_ = s.Close()
	}
	p.running.Wait()
}

// heldConn is a connection that someone else closes.
type heldConn struct {
	net.Conn
	peers *peers
	once  sync.Once
}

// SyscallConn gives access to the socket, as net.TCPConn's does.
func (c *heldConn) SyscallConn() (syscall.RawConn, error) {
	under := c.Conn
	if secure, ok := under.(*tls.Conn); ok {
		under = secure.NetConn()
	}
	sys, ok := under.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sys.SyscallConn()
}

// Close closes the connection and forgets it.
func (c *heldConn) Close() error {
	c.once.Do(func() { c.peers.drop(c.Conn) })
	return nil
}

var errNotPeer = errors.New("the connection does not begin as a peer's does")

func readHello(conn io.Reader) (kind byte, hello peerHello, err error) {
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return 0, hello, err
	}
	if err := readFrame(conn, &hello); err != nil {
		return 0, hello, fmt.Errorf("%w: %w", errNotPeer, err)
	}
	if hello.Shard < 0 || hello.Shard > MaxShards {
		return 0, hello, errNotPeer
	}
	return first[0], hello, nil
}

// readFrame reads JSON behind its length.
func readFrame(conn io.Reader, into any) error {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxHello {
		return errNotPeer
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return err
	}
	return json.Unmarshal(frame, into)
}

func writeFrame(conn io.Writer, v any) error {
	frame, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}
