package httpapi

import (
	"cmp"
	"net"
	"slices"
	"time"

	"switchyard/actors/tracker"
)

// The last places of a listener are kept back, so that a caller who fills the others
// locks nobody out. When they are reached, the connections that were idle longest are
// closed, those of callers without a valid credential first. If that frees none,
// half of the last places are for known callers, the other half for the operator.
// Health checks are answered on any of them.
//
// An idle connection has buffers, and one whose request waits has none. So idle
// connections have a limit of their own, beyond which those that were idle longest are
// closed. A new connection is accepted all the same.

// kept is the kind of requests that a connection is reserved for.
type kept uint8

const (
	keptForNobody   kept = iota // anyone may
	keptForKnown                // with a valid credential
	keptForOperator             // with the operator's
)

const (
	// backPart is the part of a listener's places that is kept back, and closedPart
	// the part of its connections that are closed at a time.
	backPart   = 16
	closedPart = 64
	// credentialWait is how long a connection may take to show a valid credential before it is
	// among the first to be closed.
	credentialWait = time.Second
	// futile is how long no connection is looked for after none was found.
	futile = 50 * time.Millisecond
)

// admit returns the connection for an accepted socket. It returns nil if there is no
// place for it, not even for a refusal.
func (l *listener) admit(inner net.Conn) *conn {
	c := &conn{Conn: inner, owner: l, peer: l.peers, address: addressOf(inner)}
	c.proxy = l.shares != nil && l.shares.Proxies.trusts(c.address)
	if !l.peers {
		boundUnsent(socket(inner))
		c.framing.origins = l.server.origins
	}
	now := time.Now()
	c.since.Store(now.UnixNano())
	from := sharer(c.address)

	l.mu.Lock()
	back := 0
	if l.shares != nil {
		back = l.limit / backPart
	}
	n := len(l.conns) - l.closing - min(int(l.resting.Load()), l.server.cfg.MaxConnections)
	full := back > 0 && n >= l.limit-back
	closed := l.makeRoom(n, full, now)
	n -= len(closed)
	counted := l.shares != nil && l.shares.AddressConnections > 0 && from.IsValid() && !c.proxy
	switch {
	case n >= l.limit && l.peers:
		c.refusal = tracker.NotApplied("Too many connections of other nodes are open.")
	case n >= l.limit:
		c.refusal = errConnections()
		l.server.metrics.refuse(boundConnections)
	case counted && l.addresses[from] >= l.shares.AddressConnections:
		c.refusal = errAddressConnections(l.shares.AddressConnections)
		l.server.metrics.refuse(boundAddressConns)
	case n >= l.limit-back/2:
		c.kept = keptForOperator
	case n >= l.limit-back:
		c.kept = keptForKnown
	}
	if c.refusal != nil {
		if l.turned >= turnedAway {
			c = nil
		} else {
			l.turned++
		}
	}
	if c != nil {
		l.conns[c] = struct{}{}
		if c.counted = counted; counted {
			l.addresses[from]++
		}
	}
	l.mu.Unlock()

	bound := boundIdle
	if full {
		bound = boundConnections
	}
	for _, old := range closed {
		l.server.metrics.refuse(bound)
		_ = cut(old.Conn) // its goroutine sees that, and forgets it
	}
	return c
}

// makeRoom chooses connections to close where there are n, and marks them. full says that
// the last places are reached.
func (l *listener) makeRoom(n int, full bool, now time.Time) (closed []*conn) {
	switch {
	case l.shares == nil:
	case full && !now.Before(l.futile):
		if closed = l.idlest(full); len(closed) == 0 {
			l.futile = now.Add(futile)
		}
	case !full && l.shares.IdleConnections > 0 && n >= l.shares.IdleConnections && !now.Before(l.fewIdle):
		if closed = l.idlest(full); len(closed) == 0 {
			l.fewIdle = now.Add(futile)
		}
	}
	l.closing += len(closed)
	return closed
}

// forget takes a connection out. The caller holds no lock.
func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.conns[c]; !there {
		return
	}
	delete(l.conns, c)
	if c.closing {
		l.closing--
	}
	if c.refusal != nil {
		l.turned--
	}
	if c.counted {
		from := sharer(c.address)
		if l.addresses[from]--; l.addresses[from] <= 0 {
			delete(l.addresses, from)
		}
	}
}

// idlest chooses connections to close, and marks them: those without a valid
// credential whose last request began longest ago, busy or not, and if all of these
// are new and few, idle ones of known callers. Unless the last places are reached, it
// chooses only if there are too many idle ones, and of these.
func (l *listener) idlest(full bool) []*conn {
	var strangers, stale, idle []*conn
	before := time.Now().Add(-credentialWait).UnixNano()
	for c := range l.conns {
		since := c.since.Load()
		switch {
		case c.closing || c.refusal != nil || !full && since < 0:
		case !c.known.Load() && !c.proxy:
			strangers = append(strangers, c)
			if max(since, -since) < before {
				stale = append(stale, c)
			}
		case since > 0:
			idle = append(idle, c)
		}
	}
	chosen, most := idle, l.limit
	if !full {
		most = l.shares.IdleConnections
	}
	switch {
	case !full && len(strangers)+len(idle) < most:
		return nil
	case len(stale) > 0:
		chosen = stale
	case len(strangers) > most/2 || len(idle) == 0:
		chosen = strangers
	}
	// Read once each: the connections are used meanwhile.
	since := make(map[*conn]int64, len(chosen))
	for _, c := range chosen {
		since[c] = max(c.since.Load(), -c.since.Load())
	}
	slices.SortFunc(chosen, func(a, b *conn) int { return cmp.Compare(since[a], since[b]) })
	chosen = chosen[:min(max(1, l.limit/closedPart), len(chosen))]
	for _, c := range chosen {
		c.closing = true
	}
	return chosen
}

// begins notes that a request is being served on the connection, and ends that its answer
// was taken.
func (c *conn) begins(at time.Time) { c.since.Store(-at.UnixNano()) }

func (c *conn) ends() { c.since.Store(-c.since.Load()) }

// rests notes that the request on a connection of another node waits, or that the connection has a stream. goesOn
// ends that. Such a connection holds no goroutine, reader or buffers, and has no place of its listener meanwhile:
// else the requests of some workspaces that wait could take them all, and keep all others of that node out. As
// many as there may be clients of this node are left out of the count.
func (c *conn) rests() {
	if c.peer && !c.resting.Swap(true) {
		c.owner.resting.Add(1)
	}
}

func (c *conn) goesOn() {
	if c.resting.Swap(false) {
		c.owner.resting.Add(-1)
	}
}

// mayUse refuses a request on a connection that is kept for others.
func (x *exchange) mayUse(known, operator bool) error {
	if x.conn == nil || x.conn.kept == keptForNobody || operator || known && x.conn.kept == keptForKnown {
		return nil
	}
	x.ends = true
	return errKeptBack()
}
