package gossip

import (
	"fmt"
	"log"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"
)

const (
	// maxStreams bounds the connections of others that are open at once, and maxStreamsOfHost those
	// of one address, so that it can't keep all others out.
	maxStreams       = 64
	maxStreamsOfHost = 32
	// maxStreamBytes bounds what is read of a connection: the records of maxGossipNodes processes
	// take less.
	maxStreamBytes = 4 << 20
	// bindTries is the number of tries to find a port that is free for both TCP and UDP.
	bindTries = 10
)

var errStreamBytes = fmt.Errorf("gossip: more than %d bytes on a connection", maxStreamBytes)

// transport is memberlist's, with bounds on the connections of others. Memberlist reads a whole
// message, of up to 20 MiB, before the key shows whether a node has sent it. It bounds neither the
// connections nor the messages that it reads at once.
type transport struct {
	*memberlist.NetTransport
	streams chan net.Conn
	// stopped is closed when no more connections are passed on, and ended when none can come.
	stopped, ended chan struct{}
	passing        sync.WaitGroup
	end            func() error

	mu   sync.Mutex
	open int
	of   map[string]int // open ones by address
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport listens at an address; port 0 takes a free one.
func newTransport(host string, port int, logger *log.Logger) (*transport, error) {
	tries := 1
	if port == 0 {
		tries = bindTries
	}
	t := &transport{streams: make(chan net.Conn), stopped: make(chan struct{}), ended: make(chan struct{}), of: map[string]int{}}
	var err error
	for range tries {
		t.NetTransport, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{host}, BindPort: port, Logger: logger})
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	t.end = sync.OnceValue(t.shutdown)
	t.passing.Go(t.pass)
	return t, nil
}

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It may be called again.
func (t *transport) Shutdown() error { return t.end() }

func (t *transport) shutdown() error {
	close(t.stopped)
	err := t.NetTransport.Shutdown() // it waits until what it has accepted is taken
	close(t.ended)
	t.passing.Wait()
	return err
}

// pass passes the connections on for which there is room, and closes the others.
func (t *transport) pass() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			s := t.enter(conn)
			if s == nil {
				_ = conn.Close() // nothing to tell it
				continue
			}
			select {
			case t.streams <- s:
			case <-t.stopped:
				_ = s.Close()
			}
		case <-t.ended:
			return
		}
	}
}

// enter counts a connection; nil if there are too many.
func (t *transport) enter(conn net.Conn) *stream {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= maxStreams || t.of[host] >= maxStreamsOfHost {
		return nil
	}
	t.open++
	t.of[host]++
	return &stream{Conn: conn, left: maxStreamBytes, leave: sync.OnceFunc(func() { t.leave(host) })}
}

func (t *transport) leave(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	if t.of[host]--; t.of[host] == 0 {
		delete(t.of, host)
	}
}

// stream is a connection of which a bounded number of bytes is read. One goroutine reads it.
type stream struct {
	net.Conn
	left  int
	leave func()
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errStreamBytes
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// Close implements net.Conn.
func (s *stream) Close() error {
	s.leave()
	return s.Conn.Close()
}
