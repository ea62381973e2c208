package httpapi

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// turnedAway is how many connections beyond the limit are answered with 503;
	// the rest are closed at once.
	turnedAway = 64
	// What a client is still sending when it was refused is read and dropped for so
	// long and so much: closing at once would reset the connection, and the client
	// would lose the answer that says why.
	lingerTime  = 2 * time.Second
	lingerBytes = 12 << 20
)

// listener counts the connections it accepts, knows them all, and outlives
// failures to accept.
type listener struct {
	net.Listener
	limit int
	peers bool // its connections are other nodes'
	// stopped ends the waiting after a failed accept.
	stopped  chan struct{}
	stopOnce sync.Once

	mu    sync.Mutex
	conns map[*conn]struct{}
}

func newListener(ln net.Listener, limit int) *listener {
	return &listener{Listener: ln, limit: limit, stopped: make(chan struct{}), conns: map[*conn]struct{}{}}
}

// Accept gives the next connection; its error is final.
func (l *listener) Accept() (net.Conn, error) {
	var wait time.Duration
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if !passing(err) {
				return nil, err
			}
			// Out of file descriptors, or the client left: neither ends the service.
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			select {
			case <-l.stopped:
				return nil, net.ErrClosed
			case <-time.After(wait):
			}
			continue
		}
		wait = 0
		if c := l.admit(inner); c != nil {
			return c, nil
		}
		_ = inner.Close() // nothing to tell it and nobody to tell
	}
}

func passing(err error) bool {
	for _, e := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (l *listener) admit(inner net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.conns)
	if n >= l.limit+turnedAway {
		return nil
	}
	c := &conn{Conn: inner, owner: l, peer: l.peers, surplus: n >= l.limit}
	l.conns[c] = struct{}{}
	return c
}

// Close stops accepting.
func (l *listener) Close() error {
	l.stopOnce.Do(func() { close(l.stopped) })
	return l.Listener.Close()
}

// closeSilent closes the connections that never sent a byte; nobody waits for an
// answer on them.
func (l *listener) closeSilent() {
	for _, c := range l.all() {
		if !c.heard.Load() {
			_ = c.Conn.Close()
		}
	}
}

// closeAll ends every connection, whatever it does.
func (l *listener) closeAll() {
	for _, c := range l.all() {
		_ = c.Conn.Close()
	}
}

func (l *listener) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		all = append(all, c)
	}
	return all
}

func (l *listener) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	owner *listener
	// peer says that another node is at the other end.
	peer bool
	// surplus is beyond the limit: its request is answered with 503.
	surplus bool
	heard   atomic.Bool
	linger  atomic.Bool

	// parked is the request that waits on the connection; nil: none.
	parked atomic.Pointer[parked]
	// keep is how many calls of Close leave the connection open: fasthttp's, when it
	// lets go of a connection that goes on. One may come late.
	keep atomic.Int32
	// resumed is a parked request that is to be gone on with, and again what is left of
	// its bytes. Owned by the connection's goroutine.
	resumed *parked
	again   []byte

	// credential is the one last sent, kept so that it is copied once per connection
	// instead of once per request. Owned by the connection's goroutine.
	credential string
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.again) > 0 {
		n := copy(p, c.again)
		if c.again = c.again[n:]; len(c.again) == 0 {
			c.again = nil
		}
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// Close closes the connection; one that was refused while it was still sending is
// first drained, within bounds.
func (c *conn) Close() error {
	for n := c.keep.Load(); n > 0; n = c.keep.Load() {
		if c.keep.CompareAndSwap(n, n-1) {
			return nil
		}
	}
	if p := c.parked.Swap(nil); p != nil {
		p.waiting.Leave()
	}
	if c.linger.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // whatever ends it, the connection is done
		}
	}
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
