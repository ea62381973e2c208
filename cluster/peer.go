package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/cluster/membership"
	"switchyard/internal/processors"
	"switchyard/storage"
)

// peerPort is the node's peer port: one listener on which other nodes open streams for Raft,
// forwarded HTTP requests and control requests, and the connections that this node opens to theirs.
//
// A connection begins with its kind, one byte, and a handshake in which both nodes prove that they
// hold the cluster's key; see peer_hello.go. The rest depends on the kind.
type peerPort struct {
	cfg      peerConfig
	handlers map[rpcKind]rpcHandler
	forward  *connListener // accepted connections with forwarded requests
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	started time.Time
	// worked is when entries last came or went: nanoseconds after started.
	worked atomic.Int64

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]peerConn // accepted and dialed, including Raft's streams
	counts  map[byte]int          // accepted ones in conns, by kind; 0: in the handshake
	groups  map[storage.Shard]*shardTransport
	links   map[string]*groupLink   // by node
	entries map[string]*entriesLink // by node
	idle    map[string][]net.Conn   // control connections to nodes, by name
}

// peerConn describes an open connection.
type peerConn struct {
	kind     byte
	node     string
	shard    storage.Shard // only for Raft's streams
	accepted bool
}

// peerConfig configures the peer port.
type peerConfig struct {
	Listener net.Listener // closed by peerPort
	TLS      *peerTLS     // nil: plain text
	Keys     [][]byte     // keys of the handshake, see peerKeys; this node proves the first
	// Self returns this node's names; its cluster is empty before it has joined.
	Self        func() peerSelf
	Generations *generations
	// Members returns the newest node list that this node has. Nil counts as an empty list.
	Members func() *membership.List
	// Resolve returns the peer address of a node.
	Resolve func(node string) (addr string, ok bool)
	// Format returns the format that this node writes, which has the version of the protocol.
	Format func() storage.Format
	Logger *slog.Logger
	// MaxForwarded bounds the connections with forwarded requests. 0 means as many as of other kinds.
	MaxForwarded int

	maxAccepted int           // tests only; 0 means maxAccepted
	gather      time.Duration // tests only; 0 means gatherHeartbeats
	leastLimit  time.Duration // tests only: the least limit of a dial, a handshake or a request; 0 means that of each
	old         bool          // tests only: a version without connections for all groups
}

// peerSelf names a node.
type peerSelf struct{ cluster, node, instance string }

// Kinds of connections, sent as the first byte. Never change or reuse one.
const (
	kindRaft    byte = 'R'
	kindHTTP    byte = 'H'
	kindControl byte = 'C'
	kindGroups  byte = 'G' // see group_message.go
	kindEntries byte = 'E' // see entries_message.go
)

const (
	// helloTimeout bounds the TLS handshake, and the peer handshake as well.
	helloTimeout = 5 * time.Second
	dialTimeout  = time.Second
	// maxAccepted bounds the connections of each kind that other nodes may hold open here, and those
	// still in the handshake. Waiting requests that are forwarded are many: peerConfig.MaxForwarded.
	maxAccepted = 8192
)

func newPeerPort(cfg peerConfig) *peerPort {
	cfg.maxAccepted = cmp.Or(cfg.maxAccepted, maxAccepted)
	cfg.MaxForwarded = cmp.Or(cfg.MaxForwarded, cfg.maxAccepted)
	cfg.gather = cmp.Or(cfg.gather, gatherHeartbeats)
	p := &peerPort{
		cfg:      cfg,
		handlers: map[rpcKind]rpcHandler{},
		forward:  newConnListener(cfg.Listener.Addr()),
		conns:    map[net.Conn]peerConn{},
		counts:   map[byte]int{},
		groups:   map[storage.Shard]*shardTransport{},
		links:    map[string]*groupLink{},
		entries:  map[string]*entriesLink{},
		idle:     map[string][]net.Conn{},
		started:  time.Now(),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// limit returns the time allowed for a step for which a node allows d. It is longer in tests.
func (p *peerPort) limit(d time.Duration) time.Duration { return max(d, p.cfg.leastLimit) }

// noteEntries notes that a request comes or goes, if it has entries.
func (p *peerPort) noteEntries(args *raft.AppendEntriesRequest, now time.Time) {
	if len(args.Entries) > 0 {
		processors.Note()
		p.worked.Store(int64(now.Sub(p.started)))
	}
}

// isIdle reports whether no entries have come or gone for a while.
func (p *peerPort) isIdle(now time.Time) bool {
	return now.Sub(p.started)-time.Duration(p.worked.Load()) >= idleAfter
}

// handle sets the handler of a kind of control request. Call it before run.
func (p *peerPort) handle(kind rpcKind, h rpcHandler) { p.handlers[kind] = h }

// run accepts connections until close.
func (p *peerPort) run() { p.running.Go(p.accept) }

func (p *peerPort) accept() {
	for {
		conn, err := p.cfg.Listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.cfg.Logger.Warn("accept a node's connection", "error", err)
			select { // for example too many open files
			case <-time.After(100 * time.Millisecond):
				continue
			case <-p.ctx.Done():
				return
			}
		}
		if !p.track(conn, peerConn{accepted: true}) {
			_ = conn.Close()
			continue
		}
		p.running.Go(func() { p.acceptConn(conn) })
	}
}

// track records an open connection, or returns false at the limit or after close.
func (p *peerPort) track(conn net.Conn, whose peerConn) bool {
	most := p.cfg.maxAccepted
	if whose.kind == kindHTTP {
		most = p.cfg.MaxForwarded
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || whose.accepted && p.counts[whose.kind] >= most {
		return false
	}
	p.conns[conn] = whose
	if whose.accepted {
		p.counts[whose.kind]++
	}
	return true
}

// goOn runs fn on a goroutine that close waits for, or returns false after close.
func (p *peerPort) goOn(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.running.Go(fn)
	}
	return !p.closed
}

// forget removes a connection. The caller holds p.mu.
func (p *peerPort) forget(conn net.Conn) {
	if whose, open := p.conns[conn]; open && whose.accepted {
		p.counts[whose.kind]--
	}
	delete(p.conns, conn)
}

// welcomed replaces a connection in the handshake by the one that came out of it. It returns false
// at the limit of the kind, or if the connection was closed meanwhile.
func (p *peerPort) welcomed(tcp, conn net.Conn, whose peerConn) bool {
	p.mu.Lock()
	_, open := p.conns[tcp]
	p.forget(tcp)
	p.mu.Unlock()
	return open && p.track(conn, whose)
}

func (p *peerPort) closeConn(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	p.forget(conn)
	p.mu.Unlock()
}

// acceptConn makes the handshake on an accepted connection and passes it to its handler.
func (p *peerPort) acceptConn(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(p.limit(helloTimeout)))
	tcp := conn
	if t := p.cfg.TLS; t != nil {
		secure := tls.Server(conn, t.server)
		if err := secure.HandshakeContext(p.ctx); err != nil {
			p.cfg.Logger.Warn("refused a node's connection", "from", tcp.RemoteAddr().String(), "error", tlsError(err))
			p.closeConn(tcp)
			return
		}
		conn = secure
	}
	kind, hello, err := p.serverHandshake(conn)
	if err != nil {
		level := slog.LevelDebug
		if errors.Is(err, errNoProof) {
			level = slog.LevelWarn
		}
		p.cfg.Logger.Log(p.ctx, level, "refused a connection that is not from a node of the cluster", "from", tcp.RemoteAddr().String(), "error", err)
		p.closeConn(tcp)
		return
	}
	status, reason := p.checkHello(kind, &hello)
	if status != statusWelcome {
		p.cfg.Logger.Warn("refused a node's connection", "from", tcp.RemoteAddr().String(), "node", hello.From, "reason", reason)
	}
	whose := peerConn{kind: kind, node: hello.From, shard: storage.Shard(hello.Shard), accepted: true}
	if status == statusWelcome && !p.welcomed(tcp, conn, whose) {
		_ = tcp.Close() // the other node takes it for one that was not sent
		return
	}
	if _, err := conn.Write([]byte{byte(status)}); err != nil || status != statusWelcome {
		p.closeConn(conn)
		p.closeConn(tcp)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p.mu.Lock()
	group := p.groups[storage.Shard(hello.Shard)]
	p.mu.Unlock()
	switch held := (&trackedConn{Conn: conn, peers: p}); kind {
	case kindControl:
		p.serveControl(conn, hello)
	case kindHTTP:
		p.forward.deliver(held)
	case kindGroups:
		p.serveGroups(conn, hello.From)
	case kindEntries:
		p.serveEntries(conn, hello.From)
	case kindRaft:
		if group == nil {
			p.closeConn(conn) // no replica is here (any more); the dialing node finds out by the cluster's status
			return
		}
		group.streams.deliver(held)
	}
}

// dial opens a connection of a kind to the node at an address. Errors wrap errNotSent.
func (p *peerPort) dial(ctx context.Context, kind byte, node, addr string, shard storage.Shard) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit(dialTimeout))
	defer cancel()
	fail := func(err error) error {
		return fmt.Errorf("%w: dial %s at %s: %w", errNotSent, node, addr, err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fail(err)
	}
	tcp := conn
	// The end of the context ends the handshake too.
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
	hello := peerHello{Cluster: self.cluster, From: self.node, Instance: self.instance, To: node, Shard: int(shard), Generation: p.cfg.Generations.current()}
	p.addressTo(&hello)
	if err := p.clientHandshake(conn, kind, &hello); err != nil {
		_ = tcp.Close()
		return nil, fail(err)
	}
	if !stop() {
		_ = tcp.Close()
		return nil, fail(ctx.Err())
	}
	if !p.track(conn, peerConn{kind: kind, node: node, shard: shard}) {
		_ = tcp.Close()
		return nil, fail(net.ErrClosed)
	}
	return conn, nil
}

// resolve returns the peer address of a node.
func (p *peerPort) resolve(node string) (string, error) {
	addr, ok := p.cfg.Resolve(node)
	if !ok {
		return "", fmt.Errorf("%w: the address of node %q is not known", errNotSent, node)
	}
	return addr, nil
}

// dialHTTP opens a connection for forwarded requests.
func (p *peerPort) dialHTTP(ctx context.Context, node string) (net.Conn, error) {
	addr, err := p.resolve(node)
	if err != nil {
		return nil, err
	}
	conn, err := p.dial(ctx, kindHTTP, node, addr, 0)
	if err != nil {
		return nil, err
	}
	return &trackedConn{Conn: conn, peers: p}, nil
}

// httpListener returns the listener of connections with forwarded requests.
func (p *peerPort) httpListener() net.Listener { return p.forward }

// disconnect closes the connections on which requests wait for a node that does not answer. The next
// request of a group opens those of all groups again. Raft closes the streams that it has dialed. From
// an accepted one it may be reading a snapshot, without a time limit, and would do nothing else until
// the rest of it comes.
func (p *peerPort) disconnect(node string) {
	p.mu.Lock()
	delete(p.idle, node)
	messages, entries := p.links[node], p.entries[node]
	delete(p.links, node)
	delete(p.entries, node)
	p.mu.Unlock()
	if messages != nil {
		messages.end()
	}
	if entries != nil {
		entries.end()
	}
	p.closeMatching(func(whose peerConn) bool { return whose.node == node && (whose.kind != kindRaft || whose.accepted) })
}

// closeMatching closes the connections for which match returns true.
func (p *peerPort) closeMatching(chosen func(peerConn) bool) {
	p.mu.Lock()
	var cut []net.Conn
	for conn, whose := range p.conns {
		if chosen(whose) {
			cut = append(cut, conn)
			p.forget(conn)
		}
	}
	p.mu.Unlock()
	for _, conn := range cut {
		_ = conn.SetDeadline(time.Unix(1, 0)) // ends reads and writes under way, also where TLS would send its alert first
		_ = conn.Close()
	}
}

// close closes every connection and waits for the goroutines that served them.
func (p *peerPort) close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	_ = p.cfg.Listener.Close()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.idle)
	groups, links, entries := p.groups, p.links, p.entries
	p.groups, p.links, p.entries = map[storage.Shard]*shardTransport{}, map[string]*groupLink{}, map[string]*entriesLink{}
	p.mu.Unlock()
	_ = p.forward.Close()
	for _, g := range groups {
		_ = g.streams.Close()
	}
	for _, l := range links {
		l.end()
	}
	for _, l := range entries {
		l.end()
	}
	p.running.Wait()
}

// trackedConn is a connection that its user closes.
type trackedConn struct {
	net.Conn
	peers *peerPort
	once  sync.Once
}

// SyscallConn gives access to the socket, as net.TCPConn's does. With TLS the socket is good for looks
// at its state alone: bytes that are written to it are not encrypted. See Plain.
func (c *trackedConn) SyscallConn() (syscall.RawConn, error) { return socket(c.Conn) }

// NetConn returns the connection below TLS, or below the tracked one. If it is closed, Close has to be called all the
// same, and does not wait for the other node.
func (c *trackedConn) NetConn() net.Conn {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c.Conn
}

// Plain reports whether the bytes of the connection are those of its socket: there is no TLS between.
func (c *trackedConn) Plain() bool {
	_, tcp := c.Conn.(*net.TCPConn)
	return tcp
}

// socket returns the socket of a connection.
func socket(conn net.Conn) (syscall.RawConn, error) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sys.SyscallConn()
}

// Close closes the connection and removes it from the tracked ones.
func (c *trackedConn) Close() error {
	c.once.Do(func() { c.peers.closeConn(c.Conn) })
	return nil
}
