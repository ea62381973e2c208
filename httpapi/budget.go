package httpapi

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"

	"switchyard/actors/tracker"
)

// The memory that a node holds for its clients is the bodies they send, the
// answers they do not take and the requests that wait for a change. All are charged to the workspace of a known caller or,
// without a valid credential, to the client's address. A body is charged as it
// arrives, not by the length it announces, but for a large one, which waits for its
// bytes first (budget_wait.go). An answer is charged from the moment it is there until
// the connection has taken it. A request that waits is charged as a body is, with its headers (park.go).
//
// Callers at many workspaces or addresses must not use up what all share, so the more
// is used, the less one may hold: a workspace or an address gets no more while it
// holds more than would be left free.

// freeBytes is how large a body or an answer may be without a charge. A connection
// needs buffers of that size anyway, and the bound on connections bounds these.
const freeBytes = 16 << 10

// accountKind is the kind of caller that bytes are charged to.
type accountKind uint8

const (
	anonymousAccount accountKind = iota
	workspaceAccount
	operatorAccount
	// addressAccount is that of an address all of whose callers are known. Their bytes
	// are charged to their workspaces, and counted for the address.
	addressAccount
)

// account is a caller that bytes are charged to.
type account struct {
	kind      accountKind
	workspace [16]byte
	address   netip.Addr // of an anonymous caller, and of an addressAccount
}

// part says which bytes of an exchange are charged.
type part uint8

const (
	bodyPart part = iota
	answerPart
	parts
)

// owed has the accounts that a connection's bytes are charged to. The budget's mutex
// guards it.
type owed struct {
	to    account
	from  account // an addressAccount, or none
	bytes [parts]int64
}

// payer has the accounts that a connection's answer is charged to before it is there, and the function that
// does so, which is made once. Owned by the connection's goroutine.
type payer struct {
	to, from account
	charge   func(body []byte) error
}

// budget counts the bytes in flight of a server.
type budget struct {
	limits    *Limits
	refused   func(bound string)
	least     int64 // the smallest bound
	all       atomic.Int64
	anonymous atomic.Int64

	mu sync.Mutex
	// by has an entry for each account that has bytes in flight.
	by map[account]int64
	// waiting has the large bodies that wait for bytes, at most one of each connection, by their
	// lines, each in the order in which they came. came counts them all.
	waiting map[line][]*heldBody
	came    uint64
}

func newBudget(limits *Limits, refused func(string)) *budget {
	b := &budget{limits: limits, refused: refused, least: math.MaxInt64, by: map[account]int64{}, waiting: map[line][]*heldBody{}}
	for _, bound := range [...]int64{limits.Bytes, limits.WorkspaceBytes, limits.AnonymousBytes, limits.AddressBytes} {
		if bound > 0 {
			b.least = min(b.least, bound)
		}
	}
	return b
}

// raise charges a part of a connection's bytes, up to size in all. An error means
// that the part is charged as before, and names the bound. With late, the bytes are
// the answer to a change that was made already: half the bound more is allowed.
func (b *budget) raise(c *conn, to, from account, p part, size int, late bool) error {
	return b.raiseBeside(nil, c, to, from, p, size, late)
}

// raiseBeside is raise for a connection whose request has a large body, unless held is nil.
func (b *budget) raiseBeside(held *heldBody, c *conn, to, from account, p part, size int, late bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.owed.to != to || c.owed.from != from {
		b.transfer(c, to, from)
	}
	more := int64(size) - c.owed.bytes[p]
	if more <= 0 {
		return nil
	}
	own := c.owed
	if held != nil {
		own.bytes[bodyPart] += held.bytes
	}
	if bound := b.over(&own, more, late); bound != "" {
		b.refused(bound)
		return errBudget(bound, late)
	}
	b.add(to, from, more)
	c.owed.bytes[p] += more
	c.owes.Store(true)
	return nil
}

// over names the bound that a connection's accounts would be over with more bytes;
// empty: none.
func (b *budget) over(o *owed, more int64, late bool) string {
	limit := b.limits.Bytes
	if late {
		limit += limit / 2
	}
	if o.to.kind != operatorAccount && limit > 0 && b.all.Load()+more > limit {
		return boundBytes
	}
	return b.overShare(o, more, late)
}

// overShare is over without the bytes of all callers together.
func (b *budget) overShare(o *owed, more int64, late bool) string {
	mine := int64(0)
	for _, n := range o.bytes {
		mine += n
	}
	exceeds := func(used, limit int64) bool {
		if late {
			limit += limit / 2
		}
		return limit > 0 && used+more > limit
	}
	// unfair reports whether one of those who share a limit holds more than would be
	// left, beside the bytes of this connection. If none would be left, nobody does.
	unfair := func(held, used, limit int64) bool {
		if late {
			limit += limit / 2
		}
		left := limit - used - more
		return limit > 0 && left >= 0 && held-mine > left
	}
	l, all, anonymous := b.limits, b.all.Load(), b.anonymous.Load()
	switch held := b.by[o.to]; {
	case o.to.kind == operatorAccount:
		return ""
	case o.to.kind == workspaceAccount && exceeds(held, l.WorkspaceBytes):
		return boundWorkspaceBytes
	case o.to.kind == workspaceAccount && unfair(held, all, l.Bytes),
		o.from.kind == addressAccount && unfair(b.by[o.from], all, l.Bytes):
		return boundBytes
	case o.to.kind != anonymousAccount:
		return ""
	case exceeds(anonymous, l.AnonymousBytes), exceeds(held, l.AddressBytes),
		l.AddressBytes > 0 && unfair(held, anonymous, l.AnonymousBytes):
		return boundAnonymousBytes
	case unfair(anonymous, all, l.Bytes):
		return boundBytes
	}
	return ""
}

// full refuses a change whose account has no bytes left, because its answer could not
// be kept.
func (b *budget) full(to, from account) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bound := b.over(&owed{to: to, from: from}, 1, false); bound != "" {
		b.refused(bound)
		return errBudget(bound, false)
	}
	return nil
}

// transfer charges what a connection owes to other accounts.
func (b *budget) transfer(c *conn, to, from account) {
	for _, n := range c.owed.bytes {
		b.add(c.owed.to, c.owed.from, -n)
		b.add(to, from, n)
	}
	c.owed.to, c.owed.from = to, from
}

func (b *budget) add(to, from account, n int64) {
	if n == 0 {
		return
	}
	b.all.Add(n)
	if to.kind == anonymousAccount {
		b.anonymous.Add(n)
	}
	b.addTo(to, n)
	if from.kind == addressAccount {
		b.addTo(from, n)
	}
}

func (b *budget) addTo(to account, n int64) {
	if b.by[to] += n; b.by[to] == 0 {
		delete(b.by, to)
	}
}

// lower charges a part of a connection's bytes for less than before.
func (b *budget) lower(c *conn, p part, size int) {
	if !c.owes.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if size <= freeBytes {
		size = 0
	}
	if less := c.owed.bytes[p] - int64(size); less > 0 {
		b.add(c.owed.to, c.owed.from, -less)
		c.owed.bytes[p] = int64(size)
		c.owes.Store(c.owed.bytes != [parts]int64{})
		b.grant()
	}
}

// release ends the charge of a part of a connection's bytes.
func (b *budget) release(c *conn, p part) {
	if !c.owes.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c.owed.to, c.owed.from, -c.owed.bytes[p])
	c.owed.bytes[p] = 0
	c.owes.Store(c.owed.bytes != [parts]int64{})
	b.grant()
}

// releaseAll ends the charge of a connection's bytes.
func (b *budget) releaseAll(c *conn) {
	for p := range parts {
		b.release(c, p)
	}
}

func errBudget(bound string, late bool) error {
	who := "The node has"
	switch bound {
	case boundWorkspaceBytes:
		who = "The workspace has"
	case boundAnonymousBytes:
		who = "Callers without a valid credential have"
	}
	message := who + " as many bytes of requests and answers in flight as " + bound + " allows the caller."
	if late {
		return tracker.OutcomeUnknown(message)
	}
	return tracker.NotApplied(message)
}

// belongs notes who an admitted request is charged to.
func (x *exchange) belongs(req *tracker.Request, public, operator bool) {
	switch {
	case operator:
		x.account = operatorAccount
	case public:
		x.account = anonymousAccount
	default:
		x.account, x.charged = workspaceAccount, req.Workspace
		if x.charged == [16]byte{} {
			x.charged = req.Caller.Home
		}
	}
}

// accountsOf returns the account that the request's bytes are charged to and, if addresses
// have bounds, the address that they also count for.
func (s *Server) accountsOf(x *exchange) (to, from account) {
	var addr netip.Addr
	if x.account == anonymousAccount || x.account == workspaceAccount && s.cfg.Limits.AddressBytes > 0 {
		addr = sharer(s.client(x))
	}
	return s.accounts(x.account, x.charged, addr)
}

// accounts is accountsOf for a caller's kind of account, its workspace and its address.
func (s *Server) accounts(kind accountKind, workspace [16]byte, addr netip.Addr) (to, from account) {
	switch kind {
	case workspaceAccount:
		to = account{kind: workspaceAccount, workspace: workspace}
		if s.cfg.Limits.AddressBytes > 0 && addr.IsValid() {
			from = account{kind: addressAccount, address: addr}
		}
	case operatorAccount:
		to = account{kind: operatorAccount}
	default:
		to = account{kind: anonymousAccount, address: addr}
	}
	return to, from
}

// chargeBody charges for a request body of so many bytes.
func (s *Server) chargeBody(x *exchange, size int) error {
	if size <= freeBytes || x.conn == nil || x.held != nil {
		return nil
	}
	to, from := s.accountsOf(x)
	return s.budget.raise(x.conn, to, from, bodyPart, s.charge(x, size), false)
}

// chargeAnswer charges for an answer's body. With changed, the request has changed
// something.
func (s *Server) chargeAnswer(x *exchange, body []byte, changed bool) error {
	if len(body) <= freeBytes || x.conn == nil {
		return nil
	}
	to, from := s.accountsOf(x)
	return s.budget.raise(x.conn, to, from, answerPart, cap(body), changed)
}

// answerCharge returns a function that charges for the request's answer before the exchange has
// it, and does not need the exchange, which a request that waits outlives; nil if nothing is charged.
// chargeAnswer finds nothing left to charge then. The function is good until the connection's next request.
func (s *Server) answerCharge(x *exchange) func(body []byte) error {
	c := x.conn
	if c == nil {
		return nil
	}
	c.payer.to, c.payer.from = s.accountsOf(x)
	if c.payer.charge == nil {
		c.payer.charge = func(body []byte) error {
			if len(body) <= freeBytes {
				return nil
			}
			return s.budget.raise(c, c.payer.to, c.payer.from, answerPart, cap(body), false)
		}
	}
	return c.payer.charge
}

// roomForAnswer refuses a change whose answer there would be no room for. It costs an
// atomic load unless an account may have used its bytes.
func (s *Server) roomForAnswer(x *exchange) error {
	if x.conn == nil || s.budget.all.Load() < s.budget.least {
		return nil
	}
	return s.budget.full(s.accountsOf(x))
}
