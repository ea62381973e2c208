package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// idlePerNode is how many idle connections are kept to a node, and idleFor how
	// long.
	idlePerNode = 512
	idleFor     = 30 * time.Second
)

// pools keep connections to other nodes between requests. fasthttp's HostClient
// would do, but for one thing: it can't report whether a request that failed was sent.
type pools struct {
	dial func(ctx context.Context, node string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	nodes  map[string][]*peerConn // idle, the last used at the end
	sweep  *time.Timer            // nil while nothing is idle
}

// peerConn is a connection to another node, one request at a time.
type peerConn struct {
	conn net.Conn
	r    *bufio.Reader // nil while nothing is read
	used time.Time
	// first is the first byte of an answer that was waited for, if begun is set and r has not read it.
	first [1]byte
	begun bool
	// deadline is the connection's; one that is a little early is not moved for each
	// request.
	deadline time.Time
}

// deadlineSlack is how much earlier than due an answer may be given up.
const deadlineSlack = 250 * time.Millisecond

// peerReaders and peerWriters have the buffers of connections to other nodes. A connection has one only while a request
// is written, or an answer read: thousands of requests may wait for their answers, and hundreds of connections are idle.
var (
	peerReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, peerBuffer) }}
	peerWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, peerBuffer) }}
)

// peerBuffer is the size of a buffer of a connection to another node, in bytes.
const peerBuffer = 8 << 10

func newPools(dial func(context.Context, string) (net.Conn, error)) *pools {
	return &pools{dial: dial, nodes: map[string][]*peerConn{}}
}

// get gives a connection on which nothing was sent yet. Its error means that
// nothing was. For a request that may be sent twice the connection is not looked at
// first.
func (p *pools) get(node string, deadline time.Time, twice bool) (*peerConn, error) {
	for {
		c := p.idle(node)
		if c == nil {
			break
		}
		// The other node may have gone meanwhile; what is sent to nobody would have to
		// count as sent.
		if twice || quiet(c.conn) {
			return c, nil
		}
		c.close()
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, err := p.dial(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("connect to node %s: %w", node, err)
	}
	return newPeerConn(conn), nil
}

func newPeerConn(conn net.Conn) *peerConn { return &peerConn{conn: conn} }

func (p *pools) idle(node string) *peerConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.nodes[node]
	if len(kept) == 0 {
		return nil
	}
	c := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	p.nodes[node] = kept[:len(kept)-1]
	return c
}

// give keeps a connection for the next request.
func (p *pools) give(node string, c *peerConn) {
	c.used = time.Now()
	p.mu.Lock()
	keep := !p.closed && len(p.nodes[node]) < idlePerNode
	if keep {
		p.nodes[node] = append(p.nodes[node], c)
		if p.sweep == nil {
			p.sweep = time.AfterFunc(idleFor, p.expire)
		}
	}
	p.mu.Unlock()
	if !keep {
		c.close()
	}
}

// expire closes what was idle for long.
func (p *pools) expire() {
	var old []*peerConn
	p.mu.Lock()
	limit := time.Now().Add(-idleFor)
	left := 0
	for node, kept := range p.nodes {
		n := 0
		for n < len(kept) && kept[n].used.Before(limit) {
			n++
		}
		old = append(old, kept[:n]...)
		if n == len(kept) {
			delete(p.nodes, node)
			continue
		}
		p.nodes[node] = append([]*peerConn(nil), kept[n:]...)
		left += len(kept) - n
	}
	p.sweep = nil
	if left > 0 && !p.closed {
		p.sweep = time.AfterFunc(idleFor/2, p.expire)
	}
	p.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// close closes what is idle; connections in use are closed when given back.
func (p *pools) close() {
	p.mu.Lock()
	p.closed = true
	nodes := p.nodes
	p.nodes = map[string][]*peerConn{}
	if p.sweep != nil {
		p.sweep.Stop()
	}
	p.mu.Unlock()
	for _, kept := range nodes {
		for _, c := range kept {
			c.close()
		}
	}
}

// ask sends a request and reads its answer. began reports whether a byte of the
// request may have gone out.
func (c *peerConn) ask(req *fasthttp.Request, res *fasthttp.Response, deadline time.Time) (began bool, err error) {
	if began, err = c.put(req, deadline); err != nil {
		return began, err
	}
	return true, c.take(req, res)
}

// put sends a request, for an answer until the deadline.
func (c *peerConn) put(req *fasthttp.Request, deadline time.Time) (began bool, err error) {
	if c.deadline.After(deadline) || deadline.Sub(c.deadline) > deadlineSlack {
		if err := c.conn.SetDeadline(deadline); err != nil {
			return false, fmt.Errorf("forward: %w", err)
		}
		c.deadline = deadline
	}
	return true, c.write(req)
}

func (c *peerConn) write(req *fasthttp.Request) error {
	w := peerWriters.Get().(*bufio.Writer)
	w.Reset(c.conn)
	defer func() {
		w.Reset(nil)
		peerWriters.Put(w)
	}()
	err := req.Write(w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	return nil
}

// wait returns when the answer to the request that was sent begins. It holds no buffer.
func (c *peerConn) wait() error {
	n, err := c.conn.Read(c.first[:])
	if n == 0 {
		return fmt.Errorf("forward: wait for the answer: %w", err)
	}
	c.begun = true
	return nil
}

// take reads the answer to the request that was sent.
func (c *peerConn) take(req *fasthttp.Request, res *fasthttp.Response) error {
	res.SkipBody = req.Header.IsHead()
	if err := res.ReadLimitBody(c.reader(), maxAnswer); err != nil {
		return fmt.Errorf("forward: read the answer: %w", err)
	}
	c.giveReader()
	return nil
}

// reader returns the connection's buffer for answers.
func (c *peerConn) reader() *bufio.Reader {
	if c.r == nil {
		c.r = peerReaders.Get().(*bufio.Reader)
		c.r.Reset(c)
	}
	return c.r
}

// giveReader gives the buffer back after an answer, unless something came behind it.
func (c *peerConn) giveReader() {
	if c.r.Buffered() > 0 {
		return
	}
	c.r.Reset(nil)
	peerReaders.Put(c.r)
	c.r = nil
}

// next reads what comes behind the head of an answer. The buffer is given back as soon as nothing is in it.
func (c *peerConn) next(p []byte) (int, error) {
	if c.r != nil && c.r.Buffered() > 0 {
		return c.r.Read(p)
	}
	if c.r != nil {
		c.giveReader()
	}
	return c.Read(p)
}

// Read implements io.Reader for the buffer.
func (c *peerConn) Read(p []byte) (int, error) {
	if c.begun {
		c.begun = false
		return copy(p, c.first[:]), nil
	}
	return c.conn.Read(p)
}

func (c *peerConn) close() { _ = c.conn.Close() }
