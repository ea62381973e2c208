package httpapi

import (
	"slices"
	"sync/atomic"
	"time"
)

// A body of more than awaitedBody waits for its bytes before any of it is read, so that many
// uploads at once come one after another at the pace of the disk, and wait in the kernel's buffers
// until then. All bytes of a body are charged at once: two bodies that had a part of their bytes each
// would wait for each other. They are charged until the engine has given the command up, too, which may
// be after its caller has left at the deadline: more bodies would come otherwise while the disk is slow.

const (
	// awaitedBody is the size in bytes above which a body is large.
	awaitedBody = 256 << 10
	// largeBodyCopies is how often a large body is in memory: as it arrived, decoded, and in what the
	// operation writes. What is no longer needed is given up on the way, but other requests are at
	// other places of it.
	largeBodyCopies = 3
	// peerRoom is what large bodies of clients leave free for those that other nodes forward. A
	// forwarded body takes bytes of two nodes. Without the room two nodes could each wait for the
	// other's bytes. It fits the largest body that a client may send.
	peerRoom = 25 << 20
)

// heldBody has the bytes that are charged for a large body. It is the Memory of its request.
type heldBody struct {
	budget  *budget
	owner   owed // whom the bytes are charged to; it has none itself
	bytes   int64
	room    int64  // that must be left free
	came    uint64 // its number in the order in which large bodies came
	holders atomic.Int32
	// granted is closed when the bytes are charged.
	granted chan struct{}
}

// Hold implements tracker.Memory.
func (l *heldBody) Hold() { l.holders.Add(1) }

// line is a line of large bodies that wait for their bytes. The lines take turns.
type line struct {
	to, from account
	peer     bool
}

// GiveUp implements tracker.Memory. The last holder ends the charge.
func (l *heldBody) GiveUp() {
	if l.holders.Add(-1) > 0 {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(l.owner.to, l.owner.from, -l.bytes)
	b.grant()
}

// await charges for a large body of size bytes and waits until, at the latest, for the bytes to be free.
// The caller is its first holder. With peer, another node forwards it. A body that is larger than a bound
// is refused at once.
func (b *budget) await(to, from account, size int, peer bool, until time.Time) (*heldBody, error) {
	at := line{to: to, from: from, peer: peer}
	l := &heldBody{budget: b, owner: owed{to: to, from: from}, bytes: int64(size), granted: make(chan struct{})}
	l.holders.Store(1)
	if !peer {
		l.room = peerRoom
	}
	b.mu.Lock()
	bound := b.never(to, l.bytes)
	if bound == "" {
		b.came++
		l.came = b.came
		b.waiting[at] = append(b.waiting[at], l)
		b.grant()
	}
	b.mu.Unlock()
	if bound != "" {
		b.refused(bound)
		return nil, errBudget(bound, false)
	}

	select {
	case <-l.granted:
		return l, nil
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-l.granted:
		return l, nil
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting[at], l)
	if i < 0 { // granted meanwhile
		return l, nil
	}
	if bound = b.overShare(&l.owner, l.bytes, false); bound == "" {
		bound = boundBytes
	}
	b.leave(at, i)
	b.grant() // it may have been the next
	b.refused(bound)
	return nil, errBudget(bound, false)
}

// leave takes a body out of its line.
func (b *budget) leave(at line, i int) {
	if b.waiting[at] = slices.Delete(b.waiting[at], i, i+1); len(b.waiting[at]) == 0 {
		delete(b.waiting, at)
	}
}

// grant charges for the bodies whose bytes are free. It is called with the mutex held, after bytes were
// given back or a body has left its line.
func (b *budget) grant() {
	for len(b.waiting) > 0 {
		at, l := b.next(false)
		if l != nil && !at.peer && b.short(l) {
			at, l = b.next(true)
		}
		if l == nil || b.short(l) {
			return
		}
		b.leave(at, 0)
		b.add(l.owner.to, l.owner.from, l.bytes)
		close(l.granted)
	}
}

// next returns the body whose turn it is, with peers that of those that other nodes forward; nil: there is none. It is
// the one whose caller would hold least with it, so that a caller with many large bodies does not keep one with few
// waiting. Those whose caller's own bound is reached are left out. Nobody passes a body whose turn it is: the bytes
// of smaller ones would never be free for a larger one.
func (b *budget) next(peers bool) (at line, next *heldBody) {
	least := int64(0)
	for q, bodies := range b.waiting {
		l := bodies[0]
		if peers && !q.peer || b.overShare(&l.owner, l.bytes, false) != "" {
			continue
		}
		holds := b.by[q.to] + l.bytes
		if q.to.kind == operatorAccount {
			holds = 0 // it waits for nothing
		}
		if next == nil || holds < least || holds == least && l.came < next.came {
			at, next, least = q, l, holds
		}
	}
	return at, next
}

// short reports whether the node has no bytes for a body.
func (b *budget) short(l *heldBody) bool {
	limit, room := b.limits.Bytes, l.room
	if limit < 2*peerRoom {
		room = 0
	}
	return l.owner.to.kind != operatorAccount && limit > 0 && b.all.Load()+l.bytes+room > limit
}

// spare gives up the bytes of a body that is still arriving if the node lacks them for a body of a caller that holds less.
// It reports whether it did so. held has the bytes of a body that waited for them; nil: they are the connection's.
func (b *budget) spare(c *conn, held *heldBody) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	owner, bytes := &c.owed, &c.owed.bytes[bodyPart]
	if held != nil {
		owner, bytes = &held.owner, &held.bytes
	}
	if *bytes == 0 {
		return false
	}
	_, next := b.next(false)
	if next == nil || next.owner.to == owner.to || b.by[next.owner.to] >= b.by[owner.to] || !b.short(next) {
		return false
	}
	b.add(owner.to, owner.from, -*bytes)
	*bytes = 0
	c.owes.Store(c.owed.bytes != [parts]int64{})
	b.grant()
	b.refused(boundBytes)
	return true
}

// never names the bound that so many bytes are over by themselves; empty: none.
func (b *budget) never(to account, bytes int64) string {
	switch l := b.limits; {
	case to.kind == operatorAccount:
		return ""
	case l.Bytes > 0 && bytes > l.Bytes:
		return boundBytes
	case l.WorkspaceBytes > 0 && bytes > l.WorkspaceBytes:
		return boundWorkspaceBytes
	}
	return ""
}

// awaitsBody reports whether a large body of a request waits for its bytes. The body of a request that may wait for
// a change stays charged to the connection instead, which outlives the exchange.
func (rt *route) awaitsBody() bool { return !rt.tools && (rt.Op == nil || !rt.Op.LongPoll) }

// awaitBody waits for the bytes of a large body whose length is known, as long as any answer may
// take. It does nothing for other bodies. Those of callers without a valid credential are charged as
// they arrive: strangers who send nothing must not use up the bytes of other strangers.
func (s *Server) awaitBody(x *exchange) error {
	length := x.ctx.Request.Header.ContentLength()
	if x.conn == nil || length <= awaitedBody || length > x.route.maxBody || !x.route.awaitsBody() {
		return nil
	}
	to, from := s.accountsOf(x)
	if to.kind == anonymousAccount {
		return nil
	}
	began := s.now()
	held, err := s.budget.await(to, from, s.charge(x, length+1), x.conn.peer, x.clock.Add(x.timeLeft(s.cfg.RequestTimeout)))
	if err != nil {
		return err
	}
	x.held = held
	if waited := s.now().Sub(began); waited >= renewAfter {
		// The client has not taken that time to send, and what is left to answer is less by it.
		x.waitedForBytes = waited
	}
	x.body = make([]byte, 0, length+1) // one more, in which the end of the body is found
	return nil
}

// renewAfter is how long a body has waited when its time to arrive begins anew.
const renewAfter = 10 * time.Millisecond

// charge returns what is charged for a body of size bytes. An operation that writes more than others
// do holds that in memory, too, and a message to the tools is copied before a tool gets its arguments,
// so each byte of these bodies counts twice. A large body counts for no more
// than there is: it is let in by itself if it fits as it is.
func (s *Server) charge(x *exchange, size int) int {
	if size <= awaitedBody+1 {
		if x.route.tools || x.route.Op != nil && x.route.Op.MaxWrites > 0 {
			return 2 * size
		}
		return size
	}
	return s.atMost(x.account, size, size*largeBodyCopies)
}

// atMost returns what is charged for size bytes that are worth more, at most as much as there is.
func (s *Server) atMost(kind accountKind, size, charge int) int {
	l := &s.cfg.Limits
	bounds := []int64{l.Bytes, l.WorkspaceBytes}
	if kind == anonymousAccount {
		bounds = []int64{l.Bytes, l.AnonymousBytes, l.AddressBytes}
	}
	for _, bound := range bounds {
		if bound > 0 {
			charge = max(size, min(charge, int(bound)))
		}
	}
	return charge
}
