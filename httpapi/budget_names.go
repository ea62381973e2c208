package httpapi

import "bytes"

// To find names that come twice, the decoder keeps the names of an object until it has read the object: each in memory
// of its own and in a map. A body with very many names is some ten times its size in memory then, also if the operation
// ignores all of them. So the names of bodies that are charged are charged as well, while the body is decoded.

const (
	// nameBytes is what a name takes while its object is read, in bytes.
	nameBytes = 100
	// keptDecoder is the size in bytes up to which a body may leave its names in a decoder that is used again.
	keptDecoder = 4 << 10
)

// countNames returns the number of names in a JSON text, or some number if it is none.
func countNames(text []byte) (n int) {
	for rest := 0; ; {
		i := bytes.IndexByte(text[rest:], ':')
		if i < 0 {
			return n
		}
		at := rest + i
		rest = at + 1
		for at--; at >= 0 && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'); at-- {
		}
		if at < 0 || text[at] != '"' {
			continue
		}
		// Within a string the quote is escaped.
		escapes := 0
		for at--; at >= 0 && text[at] == '\\'; at-- {
			escapes++
		}
		if escapes%2 == 0 {
			n++
		}
	}
}

// chargeNames charges for the names of a request's body until uncharge is called. A body counts for no more than there is.
func (s *Server) chargeNames(x *exchange) (uncharge func(), err error) {
	none := func() {}
	if x.conn == nil || len(x.body) <= freeBytes || !x.route.readsBody() && !x.route.checksBody() {
		return none, nil
	}
	names := countNames(x.body) * nameBytes
	held := s.charge(x, cap(x.body))
	if x.held != nil {
		names -= held - cap(x.body) // the copies, which come later
	}
	if names <= 0 {
		return none, nil
	}
	to, from := s.accountsOf(x)
	before := 0 // of the body, on the connection's account
	if x.held == nil {
		before = held
	}
	all := s.atMost(x.account, held, held+names)
	if err := s.budget.raiseBeside(x.held, x.conn, to, from, bodyPart, before+all-held, false); err != nil {
		return none, err
	}
	return func() { s.budget.lower(x.conn, bodyPart, before) }, nil
}
