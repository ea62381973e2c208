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
	r    *bufio.Reader
	w    *bufio.Writer
	used time.Time
	// deadline is the connection's; one that is a little early is not moved for each
	// request.
	deadline time.Time
}

// deadlineSlack is how much earlier than due an answer may be given up.
const deadlineSlack = 250 * time.Millisecond

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

func newPeerConn(conn net.Conn) *peerConn {
	return &peerConn{conn: conn, r: bufio.NewReaderSize(conn, 8<<10), w: bufio.NewWriterSize(conn, 8<<10)}
}

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
	if err := req.Write(c.w); err != nil {
		return true, fmt.Errorf("forward: %w", err)
	}
	if err := c.w.Flush(); err != nil {
		return true, fmt.Errorf("forward: %w", err)
	}
	return true, nil
}

// take reads the answer to the request that was sent.
func (c *peerConn) take(req *fasthttp.Request, res *fasthttp.Response) error {
	res.SkipBody = req.Header.IsHead()
	if err := res.ReadLimitBody(c.r, maxAnswer); err != nil {
		return fmt.Errorf("forward: read the answer: %w", err)
	}
	return nil
}

func (c *peerConn) close() { _ = c.conn.Close() }
