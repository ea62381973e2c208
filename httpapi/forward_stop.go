package httpapi

import (
	"time"

	"switchyard/actors/tracker"
)

// A node that stops hands its workspaces over first. Requests that waited here would then wait at
// the next owner, until this node cuts their connections. So requests that would wait at another
// node are answered at once from the hand-over on, and those that wait there when the node shuts
// down.

// Leaving tells the server that its node stops soon, before the node hands its workspaces over.
func (s *Server) Leaving() { s.stopping.Store(true) }

// refuseWait returns the answer to a request that would wait at another node while this one stops.
// Nothing was done for it there. A read does not wait at a node that is told of an earlier look: it
// is answered with the data there is.
func (t *forwarding) refuseWait() error {
	s, x := t.server, t.x
	if t.waits == 0 || !s.stopping.Load() {
		return nil
	}
	if s.onlyReads(x) {
		x.looked = true
		return nil
	}
	x.ends = true // the client's next connection may lead to another node
	return x.finalError(errStopping())
}

func errStopping() error { return tracker.NotApplied("The node is shutting down.") }

// end abandons all requests that wait at other nodes, and those that are added later.
func (l *leavers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for peer := range l.waiting {
		l.drop(peer)
	}
}

// drop abandons a request. The caller holds the mutex.
func (l *leavers) drop(peer *peerConn) {
	l.waiting[peer] = nil
	_ = peer.conn.SetReadDeadline(time.Unix(1, 0)) // an error says that it is closed
}
