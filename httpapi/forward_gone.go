package httpapi

import (
	"errors"
	"sync"
	"time"

	"switchyard/actors/tracker"
)

// A client may leave while its request waits at another node. That node must not make a claim for
// it: the session would run under a lease that nobody holds. The other node sees only its connection
// with this node, so this node closes that connection when the client has left. One timer serves all
// waiting requests.

// lookEvery is the time between two looks for clients that have left.
const lookEvery = time.Second

// leavers has the requests that wait at other nodes, and abandons those whose clients have left.
// When the node shuts down it abandons all.
type leavers struct {
	mu sync.Mutex
	// waiting has the clients' connections by those to the other nodes. The connection of a
	// request that was abandoned is nil.
	waiting map[*peerConn]*conn
	timer   *time.Timer // nil while no request waits
	ended   bool        // the node shuts down
}

// waitingPeer is a request that waits at another node.
type waitingPeer struct {
	client *conn
	peer   *peerConn
}

// enter adds a request that was sent to another node; leave removes it.
func (l *leavers) enter(w waitingPeer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[*peerConn]*conn{}
	}
	l.waiting[w.peer] = w.client
	if l.ended {
		l.drop(w.peer)
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(lookEvery, l.tick)
	}
}

// leave removes a request and reports whether it was abandoned. If so, its connection to the other
// node can't be used again.
func (l *leavers) leave(peer *peerConn) (abandoned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client, entered := l.waiting[peer]
	delete(l.waiting, peer)
	return entered && client == nil
}

// tick looks for clients that have left, and sets the timer again while requests wait.
func (l *leavers) tick() {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer = nil; len(l.waiting) > 0 {
		l.timer = time.AfterFunc(lookEvery, l.tick)
	}
}

// look abandons the requests of clients that have left. The kernel is asked without the mutex, so
// that no request waits for that.
func (l *leavers) look() {
	l.mu.Lock()
	all := make([]waitingPeer, 0, len(l.waiting))
	for peer, client := range l.waiting {
		if client != nil {
			all = append(all, waitingPeer{client, peer})
		}
	}
	l.mu.Unlock()
	for _, w := range all {
		if w.client.gone() {
			l.abandon(w)
		}
	}
}

// abandon ends the wait of a request unless it has its answer by now: then the connection may have
// another client's request. The request's own goroutine closes the connection, because TLS may take its time
// for that.
func (l *leavers) abandon(w waitingPeer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[w.peer] != w.client {
		return
	}
	l.drop(w.peer)
}

// errAbandoned ends a request whose client has left, or whose node shuts down.
var errAbandoned = errors.New("the request no longer waits")

// askWaiting is ask for a request that asks to wait. It returns errAbandoned if the client leaves
// meanwhile, or the node shuts down.
func (t *forwarding) askWaiting(peer *peerConn) (began bool, err error) {
	if began, err = peer.put(&t.sent, t.deadline()); err != nil {
		return began, err
	}
	l := &t.server.leavers
	l.enter(waitingPeer{t.x.conn, peer})
	if err = peer.wait(); err == nil {
		err = peer.take(&t.sent, &t.x.ctx.Response)
	}
	if l.leave(peer) {
		return true, errAbandoned
	}
	return true, err
}

// abandoned is the answer to a request that was abandoned. Nobody may read it if the client has left.
// The other node may have carried out a change before it noticed.
func (t *forwarding) abandoned() error {
	message := "The client has closed the connection."
	if t.server.draining.Load() {
		message = "The node is shutting down."
	}
	if t.server.onlyReads(t.x) {
		return t.x.finalError(tracker.NotApplied(message))
	}
	return tracker.OutcomeUnknown(message)
}
