package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// link is a connection to one other node that carries numbered requests of all groups, and their
// answers in any order. It dials when it is used. A goroutine of the peer port reads the answers of the
// current connection.
type link struct {
	port *peerPort
	node string
	kind byte

	mu       sync.Mutex
	ended    bool
	number   uint32
	waiting  map[uint32]chan groupOutcome // capacity 1 each
	dialing  *linkDial                    // nil: none is under way
	conn     net.Conn                     // nil: none is open
	answered time.Time                    // when the last answer came over conn, or when it was opened
	oldUntil time.Time                    // until then the node counts as one that refuses such connections
}

// linkDial is a dial that all who need the connection wait for.
type linkDial struct {
	done chan struct{}
	conn net.Conn
	err  error
}

// groupOutcome is an answer, or the reason why there is none.
type groupOutcome struct {
	answer groupAnswer
	err    error
}

// oldPeerPause is how long requests go by the groups' streams after a node has refused a connection
// for all groups.
const oldPeerPause = 30 * time.Second

var (
	// errOldPeer says that requests to the node go by the groups' streams.
	errOldPeer      = errors.New("cluster: the node takes no connections for all groups")
	errGroupTimeout = errors.New("cluster: a request was not answered in time")
	errLinkEnded    = errors.New("cluster: the connection ended before the answer")
)

func newLink(port *peerPort, node string, kind byte) link {
	return link{port: port, node: node, kind: kind, waiting: map[uint32]chan groupOutcome{}}
}

// register numbers a request. The caller awaits its answer, or abandons it. The error is errOldPeer, or
// wraps errNotSent.
func (l *link) register(now time.Time) (number uint32, outcome chan groupOutcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return 0, nil, fmt.Errorf("%w: %w", errNotSent, net.ErrClosed)
	case now.Before(l.oldUntil):
		return 0, nil, errOldPeer
	}
	l.number++
	outcome = make(chan groupOutcome, 1)
	l.waiting[l.number] = outcome
	return l.number, outcome, nil
}

// await returns the answer to a request that was registered at a time. The error is that of the
// answer, if it has one.
func (l *link) await(ctx context.Context, number uint32, outcome chan groupOutcome, since time.Time) (groupAnswer, error) {
	timer := time.NewTimer(l.port.limit(raftTimeout))
	defer timer.Stop()
	select {
	case o := <-outcome:
		if o.err == nil {
			o.err = o.answer.err()
		}
		return o.answer, o.err
	case <-timer.C:
		l.abandon(number, since)
		return groupAnswer{}, errGroupTimeout
	case <-ctx.Done():
		l.abandon(number, time.Time{})
		return groupAnswer{}, net.ErrClosed
	}
}

// abandon forgets a request that nobody waits for any more. A connection over which no answer has come
// since the request was sent is closed: the other end may be gone without a word.
func (l *link) abandon(number uint32, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, number)
	if l.conn != nil && l.answered.Before(since) {
		l.drop(errGroupTimeout)
	}
}

// connection returns the open connection, or dials. All who call it meanwhile share the dial.
func (l *link) connection() (net.Conn, error) {
	l.mu.Lock()
	if l.conn != nil {
		defer l.mu.Unlock()
		return l.conn, nil
	}
	if time.Now().Before(l.oldUntil) {
		l.mu.Unlock()
		return nil, errOldPeer
	}
	d := l.dialing
	if d == nil {
		d = &linkDial{done: make(chan struct{})}
		l.dialing = d
		l.mu.Unlock()
		l.dial(d)
		return d.conn, d.err
	}
	l.mu.Unlock()
	<-d.done
	return d.conn, d.err
}

func (l *link) dial(d *linkDial) {
	var addr string
	if addr, d.err = l.port.resolve(l.node); d.err == nil {
		d.conn, d.err = l.port.dial(l.port.ctx, l.kind, l.node, addr, 0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(d.done)
	l.dialing = nil
	var refused *refusedError
	switch {
	case errors.As(d.err, &refused) && refused.status == statusKind:
		l.oldUntil = time.Now().Add(oldPeerPause)
		d.err = errOldPeer
	case d.err == nil && (l.ended || !l.port.goOn(func() { l.receive(d.conn) })):
		l.port.closeConn(d.conn)
		d.conn, d.err = nil, fmt.Errorf("%w: %w", errNotSent, net.ErrClosed)
	case d.err == nil:
		l.conn, l.answered = d.conn, time.Now()
	}
}

// receive hands out the answers of a connection until it ends.
func (l *link) receive(conn net.Conn) {
	frames := groupFrames[groupAnswer]{from: bufio.NewReader(conn), size: groupAnswerBytes, read: readGroupAnswer}
	for {
		answers, err := frames.next()
		if err != nil {
			l.fail(conn, fmt.Errorf("%w: read the answers of node %q: %w", errLinkEnded, l.node, err))
			return
		}
		l.mu.Lock()
		if l.conn == conn {
			l.answered = time.Now()
		}
		for _, a := range answers {
			if to, ok := l.waiting[a.number]; ok {
				delete(l.waiting, a.number)
				to <- groupOutcome{answer: a}
			}
		}
		l.mu.Unlock()
	}
}

// fail closes a connection that ended with an error. Requests by the connection that took its place go
// on.
func (l *link) fail(conn net.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn {
		l.drop(err)
	} else {
		l.port.closeConn(conn)
	}
}

// drop closes the connection, if there is one, and ends the wait of all requests with an error. The
// caller holds l.mu.
func (l *link) drop(err error) {
	if l.conn != nil {
		l.port.closeConn(l.conn)
		l.conn = nil
	}
	for number, to := range l.waiting {
		delete(l.waiting, number)
		to <- groupOutcome{err: err}
	}
}

// end ends the link for good.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.drop(net.ErrClosed)
}
