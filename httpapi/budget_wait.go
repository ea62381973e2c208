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
	room    int64 // that must be left free
	holders atomic.Int32
	// granted is closed when the bytes are charged.
	granted chan struct{}
}

// Hold implements tracker.Memory.
func (l *heldBody) Hold() { l.holders.Add(1) }

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
// The caller is its first holder. With peer, another node forwards it. Callers take their bytes in the
// order in which they came, but for those whose own bound is reached: these don't keep others waiting. A
// body that is larger than a bound is refused at once.
func (b *budget) await(to, from account, size int, peer bool, until time.Time) (*heldBody, error) {
	l := &heldBody{budget: b, owner: owed{to: to, from: from}, bytes: int64(size), granted: make(chan struct{})}
	l.holders.Store(1)
	if !peer {
		l.room = peerRoom
	}
	b.mu.Lock()
	bound := b.never(to, l.bytes)
	if bound == "" {
		b.waiting = append(b.waiting, l)
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
	i := slices.Index(b.waiting, l)
	if i < 0 { // granted meanwhile
		return l, nil
	}
	bound = b.keepsWaiting(l)
	b.waiting = slices.Delete(b.waiting, i, i+1)
	b.refused(bound)
	return nil, errBudget(bound, false)
}

// grant charges for the bodies whose bytes are free. It is called with the mutex held, after bytes were
// given back.
func (b *budget) grant() {
	if len(b.waiting) == 0 {
		return
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(l *heldBody) bool {
		if b.keepsWaiting(l) != "" {
			return false
		}
		b.add(l.owner.to, l.owner.from, l.bytes)
		close(l.granted)
		return true
	})
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

// keepsWaiting names the bound that a body waits for; empty: its bytes are free.
func (b *budget) keepsWaiting(l *heldBody) string {
	limit := b.limits.Bytes
	if l.owner.to.kind != operatorAccount && limit >= 2*peerRoom && b.all.Load()+l.bytes+l.room > limit {
		return boundBytes
	}
	return b.over(&l.owner, l.bytes, false)
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
		if err := x.conn.SetReadDeadline(s.now().Add(s.cfg.ReadTimeout)); err != nil {
			return errMalformed()
		}
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
