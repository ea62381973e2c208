package cluster

import (
	"context"
	"fmt"
	"net"
	"time"
)

// groupLink sends the messages of all groups to one other node. Its goroutine, which belongs to the
// peer port, writes the frames.
type groupLink struct {
	link
	wake  chan struct{} // capacity 1: a message waits
	hurry chan struct{} // capacity 1: it does not wait for others
	quit  chan struct{} // closed by end

	queue []groupMessage // under link.mu
}

// groupLink returns the link to a node.
func (p *peerPort) groupLink(node string) (*groupLink, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: %w", errNotSent, net.ErrClosed)
	}
	l := p.links[node]
	if l == nil {
		l = &groupLink{link: newLink(p, node, kindGroups), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), quit: make(chan struct{})}
		p.links[node] = l
		p.running.Go(l.run)
	}
	return l, nil
}

// sendGroup sends a message of a group to a node and returns the answer. An urgent one does not wait
// for those of other groups. The error is errOldPeer if the node takes no such connections, wraps
// errNotSent if the message was certainly not delivered, and is that of the answer if it has one.
func (p *peerPort) sendGroup(ctx context.Context, node string, m groupMessage, urgent bool) (groupAnswer, error) {
	l, err := p.groupLink(node)
	if err != nil {
		return groupAnswer{}, err
	}
	since := time.Now()
	number, outcome, err := l.enqueue(m, since)
	if err != nil {
		return groupAnswer{}, err
	}
	if urgent {
		notify(l.hurry)
	}
	notify(l.wake)
	return l.await(ctx, number, outcome, since)
}

// hurryGroups sends the heartbeats that wait for others now.
func (p *peerPort) hurryGroups() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		notify(l.hurry)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is pending
	}
}

// enqueue adds a message to the next frame.
func (l *groupLink) enqueue(m groupMessage, now time.Time) (number uint32, outcome chan groupOutcome, err error) {
	if m.number, outcome, err = l.register(now); err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, m)
	return m.number, outcome, nil
}

// run sends frames until the link is ended.
func (l *groupLink) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var frame []byte
	for {
		select {
		case <-l.wake:
		case <-l.quit:
			return
		}
		timer.Reset(l.port.cfg.gather)
		select {
		case <-timer.C:
		case <-l.hurry:
		case <-l.quit:
			return
		}
		conn, err := l.connection()
		if err != nil {
			l.dropWith(err)
			continue
		}
		if frame = l.takeQueue(conn, frame[:0]); len(frame) == 0 {
			continue
		}
		_ = conn.SetWriteDeadline(time.Now().Add(l.port.limit(raftTimeout)))
		if _, err := conn.Write(frame); err != nil {
			l.fail(conn, fmt.Errorf("send messages of groups to node %q: %w", l.node, err))
		}
	}
}

// takeQueue empties the queue, and appends frames of the messages whose answers are still awaited. If
// the connection has ended meanwhile, the messages are left for the next one: on this one they would
// wait until their time runs out.
func (l *groupLink) takeQueue(conn net.Conn, b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn {
		notify(l.wake)
		return b
	}
	left := l.queue[:0]
	for _, m := range l.queue {
		if l.waiting[m.number] != nil {
			left = append(left, m)
		}
	}
	for len(left) > 0 {
		n := min(len(left), maxGroupFrame)
		b = appendGroupFrame(b, left[:n], appendGroupMessage)
		left = left[n:]
	}
	l.queue = l.queue[:0]
	if cap(l.queue) > maxGroupFrame { // many came while a node did not answer
		l.queue = nil
	}
	return b
}

// dropWith ends the wait of all requests with an error, and so empties the queue: nobody awaits the
// answers to its messages any more.
func (l *groupLink) dropWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(err)
	l.queue = nil
}

// end ends the link for good. A message after it makes a new one. It is called once.
func (l *groupLink) end() {
	l.link.end()
	close(l.quit)
}
