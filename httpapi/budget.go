package httpapi

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"

	"switchyard/actors/tracker"
)

// The memory that a node holds for its clients is the bodies they send and the
// answers they do not take. Both are charged to the workspace of a known caller or,
// without a valid credential, to the client's address. A body is charged as it
// arrives, not by the length it announces, and an answer from the moment it is
// there until the connection has taken it.

// freeBytes is how large a body or an answer may be without a charge. A connection
// needs buffers of that size anyway, and the bound on connections bounds these.
const freeBytes = 16 << 10

// accountKind says what kind of caller bytes are charged to.
type accountKind uint8

const (
	anonymousAccount accountKind = iota
	workspaceAccount
	operatorAccount
)

// account is what bytes are charged to.
type account struct {
	kind      accountKind
	workspace [16]byte
	address   netip.Addr // of an anonymous caller
}

// part says which bytes of an exchange are charged.
type part uint8

const (
	bodyPart part = iota
	answerPart
	parts
)

// owed is what a connection's bytes are charged to. The budget's mutex guards it.
type owed struct {
	to    account
	bytes [parts]int64
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
}

func newBudget(limits *Limits, refused func(string)) *budget {
	b := &budget{limits: limits, refused: refused, least: math.MaxInt64, by: map[account]int64{}}
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
func (b *budget) raise(c *conn, to account, p part, size int, late bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.owed.to != to {
		b.transfer(c, to)
	}
	more := int64(size) - c.owed.bytes[p]
	if more <= 0 {
		return nil
	}
	if bound := b.over(to, more, late); bound != "" {
		b.refused(bound)
		return errBudget(bound, late)
	}
	b.add(to, more)
	c.owed.bytes[p] += more
	c.owes.Store(true)
	return nil
}

// over names the bound that the account would be over with more bytes; empty: none.
func (b *budget) over(to account, more int64, late bool) string {
	exceeds := func(used, limit int64) bool {
		if late {
			limit += limit / 2
		}
		return limit > 0 && used+more > limit
	}
	l := b.limits
	switch {
	case to.kind == operatorAccount:
		return ""
	case exceeds(b.all.Load(), l.Bytes):
		return boundBytes
	case to.kind == workspaceAccount && exceeds(b.by[to], l.WorkspaceBytes):
		return boundWorkspaceBytes
	case to.kind == anonymousAccount && (exceeds(b.anonymous.Load(), l.AnonymousBytes) || exceeds(b.by[to], l.AddressBytes)):
		return boundAnonymousBytes
	}
	return ""
}

// full refuses a change whose account has no bytes left, because its answer could not
// be kept.
func (b *budget) full(to account) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bound := b.over(to, 1, false); bound != "" {
		b.refused(bound)
		return errBudget(bound, false)
	}
	return nil
}

// transfer charges what a connection owes to another account.
func (b *budget) transfer(c *conn, to account) {
	for _, n := range c.owed.bytes {
		b.add(c.owed.to, -n)
		b.add(to, n)
	}
	c.owed.to = to
}

func (b *budget) add(to account, n int64) {
	if n == 0 {
		return
	}
	b.all.Add(n)
	if to.kind == anonymousAccount {
		b.anonymous.Add(n)
	}
	if b.by[to] += n; b.by[to] == 0 {
		delete(b.by, to)
	}
}

// release ends the charge of a part of a connection's bytes.
func (b *budget) release(c *conn, p part) {
	if !c.owes.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c.owed.to, -c.owed.bytes[p])
	c.owed.bytes[p] = 0
	c.owes.Store(c.owed.bytes != [parts]int64{})
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
	message := who + " as many bytes of requests and answers in flight as " + bound + " allows."
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

// accountOf is what the request's bytes are charged to.
func (s *Server) accountOf(x *exchange) account {
	switch x.account {
	case workspaceAccount:
		return account{kind: workspaceAccount, workspace: x.charged}
	case operatorAccount:
		return account{kind: operatorAccount}
	}
	return account{kind: anonymousAccount, address: sharer(s.client(x))}
}

// chargeBody charges for a request body of so many bytes.
func (s *Server) chargeBody(x *exchange, size int) error {
	if size <= freeBytes || x.conn == nil {
		return nil
	}
	return s.budget.raise(x.conn, s.accountOf(x), bodyPart, size, false)
}

// chargeAnswer charges for an answer's body. With changed, the request has changed
// something.
func (s *Server) chargeAnswer(x *exchange, body []byte, changed bool) error {
	if len(body) <= freeBytes || x.conn == nil {
		return nil
	}
	return s.budget.raise(x.conn, s.accountOf(x), answerPart, cap(body), changed)
}

// roomForAnswer refuses a change whose answer there would be no room for. It costs an
// atomic load unless an account may have used its bytes.
func (s *Server) roomForAnswer(x *exchange) error {
	if x.conn == nil || s.budget.all.Load() < s.budget.least {
		return nil
	}
	return s.budget.full(s.accountOf(x))
}
