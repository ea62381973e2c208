package httpapi

import (
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// turnedAway is how many connections beyond the limit are answered with 503;
	// the rest are closed at once.
	turnedAway = 64
	// After a refusal the bytes that the client is still sending are read and dropped,
	// up to this time and amount: closing at once would reset the connection, and the
	// client would lose the answer with the reason.
	lingerTime  = 2 * time.Second
	lingerBytes = 12 << 20
	// maxUnsent is how many bytes the kernel takes of a client's connection and has not
	// sent yet.
	maxUnsent = 128 << 10
)

// listener counts the connections it accepts, knows them all, and outlives
// failures to accept.
type listener struct {
	net.Listener
	server *Server
	limit  int
	peers  bool // its connections are other nodes'
	// shares bound what one address may take; nil for the connections of other nodes.
	shares *Limits
	// stopped ends the waiting after a failed accept.
	stopped  chan struct{}
	stopOnce sync.Once

	mu        sync.Mutex
	conns     map[*conn]struct{}
	addresses map[netip.Addr]int // counted connections by sharer
	closing   int                // connections that are closed, and still among conns
	turned    int                // connections that only get the answer that the node is full
	resting   atomic.Int64       // connections that rest
	futile    time.Time          // until then there is no connection to close
	fewIdle   time.Time          // until then there are not too many idle connections
}

func (s *Server) newListener(ln net.Listener, limit int) *listener {
	return &listener{Listener: ln, server: s, limit: limit, stopped: make(chan struct{}), conns: map[*conn]struct{}{}, addresses: map[netip.Addr]int{}}
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
		_ = cut(inner) // nothing to tell it and nobody to tell
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
			_ = cut(c.Conn)
		}
	}
}

// endReceiving ends the requests that are still arriving. Those that have arrived go on.
func (l *listener) endReceiving() {
	for _, c := range l.all() {
		c.late.Store(true)
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // an error says that it is closed
	}
}

// closeAll ends every connection, busy or not.
func (l *listener) closeAll() {
	for _, c := range l.all() {
		_ = cut(c.Conn)
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
	peer   bool
	heard  atomic.Bool
	linger atomic.Bool
	// late is set when requests that are still arriving come too late: the node shuts down.
	late    atomic.Bool
	arrival arrival

	// address is the one at the other end, and proxy says that it is a trusted proxy's.
	address netip.Addr
	proxy   bool
	// refusal is the answer to requests on a connection beyond a limit, or nil. kept is
	// set for connections that use one of the last places. counted is set while the
	// connection counts among those of its address.
	refusal error
	kept    kept
	counted bool
	closing bool // guarded by the listener's mutex
	// known says that the last request with a credential had a valid one.
	known atomic.Bool
	// since is when the last request began, in Unix nanoseconds, negative while it is
	// served, and until the client has taken the answer.
	since atomic.Int64
	// resting is set while the connection counts among those of its listener that rest.
	resting atomic.Bool
	// owed has the bytes that the budget counts for the connection, and owes is set if
	// there are any. answered is set if the next bytes written are the answer, and the
	// next bytes read come after it. Owned by the connection's goroutine.
	owed     owed
	owes     atomic.Bool
	answered bool
	payer    payer
	// answer is the buffer that the last answer is sent from; nil: none. Owned by the
	// connection's goroutine.
	answer *answerBuffer

	// parked is the request that waits on the connection; nil: none.
	parked atomic.Pointer[parked]
	// detached is the stream or relay that is to get the connection from fasthttp; nil: none.
	// fasthttp closes the connection instead if it fails before.
	detached atomic.Pointer[ending]
	// keep is how many calls of Close leave the connection open: fasthttp's, when it
	// releases a connection that is still used. One may come late.
	keep atomic.Int32
	// resumed is a parked request to continue, and again the rest of its bytes. Owned by
	// the connection's goroutine.
	resumed *parked
	again   []byte

	// framing follows the client's requests, served is how many of them have come to the
	// handler, and fault is why no more is read. Owned by the connection's goroutine.
	framing framing
	served  int
	fault   error

	// credential is the one last sent, and sum its SHA-256: they are copied and hashed
	// once for each connection, not for each request. Owned by the connection's goroutine.
	credential string
	sum        *[sha256.Size]byte
}

func (c *conn) Read(p []byte) (int, error) {
	if c.answered {
		c.taken()
	}
	if len(c.again) > 0 {
		n := copy(p, c.again)
		if c.again = c.again[n:]; len(c.again) == 0 {
			c.again = nil
		}
		return n, nil
	}
	if c.fault != nil {
		return 0, c.fault
	}
	n, err := c.Conn.Read(p)
	for n == 0 && err != nil && c.waitsOn(err) {
		n, err = c.Conn.Read(p)
	}
	if c.arrival.on {
		c.arrival.bytes += int64(n)
	}
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	if n > 0 && !c.peer {
		if n, c.fault = c.framing.scan(p[:n]); n == 0 {
			return 0, c.fault
		}
	}
	return n, err
}

// taken notes that the client has taken the last answer.
func (c *conn) taken() {
	c.answered = false
	c.ends()
	c.owner.server.answers.put(c.answer)
	c.answer = nil
	c.owner.server.budget.releaseAll(c)
}

// Close closes the connection; one that was refused while it was still sending is
// first drained, within bounds. It does not wait for the client to read (goodbyes).
func (c *conn) Close() error {
	for n := c.keep.Load(); n > 0; n = c.keep.Load() {
		if c.keep.CompareAndSwap(n, n-1) {
			return nil
		}
	}
	if p := c.parked.Swap(nil); p != nil {
		c.owner.server.waits.leave(p.from)
		p.waiting.Leave()
	}
	if st := c.detached.Swap(nil); st != nil {
		(*st).End() // which closes the connection
		return nil
	}
	if c.linger.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // after any error the connection is done
		}
	}
	c.goesOn()
	c.owner.server.budget.releaseAll(c)
	c.owner.forget(c)
	return c.owner.server.goodbyes.close(c.Conn)
}
