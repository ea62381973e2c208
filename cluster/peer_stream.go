package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

const (
	// raftTimeout bounds one of Raft's requests: the largest entry has to get through a slow
	// network in that time. Raft allows more for snapshots, by their size.
	raftTimeout = 5 * time.Second
	// raftPool is the number of idle streams that a group keeps per peer.
	raftPool = 2
)

// shardStreams opens and accepts the streams of one group. It implements raft.StreamLayer.
type shardStreams struct {
	*connListener
	peers *peerPort
	shard storage.Shard
}

// Dial opens a stream to the group's member on a node. Raft knows nodes by name.
func (s *shardStreams) Dial(node raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	addr, err := s.peers.resolve(string(node))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.peers.ctx, timeout)
	defer cancel()
	conn, err := s.peers.dial(ctx, kindRaft, string(node), addr, s.shard)
	if err != nil {
		return nil, err
	}
	return &raftStream{Conn: &trackedConn{Conn: conn, peers: s.peers}, clock: time.Now, short: s.peers.limit(raftTimeout)}, nil
}

// Close closes the group's streams and refuses new ones.
func (s *shardStreams) Close() error {
	s.peers.mu.Lock()
	if t := s.peers.groups[s.shard]; t != nil && t.streams == s.connListener {
		delete(s.peers.groups, s.shard)
	}
	s.peers.mu.Unlock()
	// Raft waits for its requests under way before it stops.
	s.peers.closeMatching(func(whose peerConn) bool { return whose.kind == kindRaft && whose.shard == s.shard })
	return s.connListener.Close()
}

// nodeAddr is a node's name in the form of an address, for Raft.
type nodeAddr string

// Network implements net.Addr.
func (nodeAddr) Network() string { return "switchyard" }

// String implements net.Addr.
func (a nodeAddr) String() string { return string(a) }

// connListener is a listener of connections that were accepted elsewhere.
type connListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newConnListener(addr net.Addr) *connListener {
	return &connListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// deliver waits until Accept takes the connection, and closes it after helloTimeout.
func (h *connListener) deliver(conn net.Conn) {
	timer := time.NewTimer(helloTimeout)
	defer timer.Stop()
	select {
	case h.conns <- conn:
		return
	case <-h.closed:
	case <-timer.C:
	}
	_ = conn.Close()
}

// Accept implements net.Listener.
func (h *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, fmt.Errorf("accept on %s: %w", h.addr, net.ErrClosed)
	}
}

// Close implements net.Listener.
func (h *connListener) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *connListener) Addr() net.Addr { return h.addr }
