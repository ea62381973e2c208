package httpapi

// The answer of a session's tool is in memory many times: as the operation made it, as the SDK's result, which has it
// as an object and as text, and in what the SDK makes of that until it is the answer to the message. The SDK writes
// some characters in six bytes. So the answer of a query is charged with its copies, before they are made, and
// later without them.

// toolCopies is how often the SDK's answer is in memory.
const toolCopies = 4

// toolCharge returns a function that charges for the answer of a tool; nil if nothing is charged. The SDK may still
// run a tool when its request has ended, so the function has its own accounts. A large answer counts for no more than
// there is: it fits by itself.
func (s *Server) toolCharge(x *exchange) func(body []byte) error {
	c := x.conn
	if c == nil {
		return nil
	}
	to, from := s.accountsOf(x)
	return func(body []byte) error {
		if len(body) <= freeBytes {
			return nil
		}
		return s.budget.raise(c, to, from, answerPart, s.atMost(to.kind, len(body), toolCopies*messageSize(body)), false)
	}
}

// messageSize returns the size of the SDK's answer with the answer of a tool, as an object and as text.
func messageSize(body []byte) int {
	size := 2 * len(body)
	for _, c := range body {
		switch c {
		case '"', '\\':
			size++
		case '<', '>', '&': // an escape of six bytes, in both
			size += 10
		}
	}
	return size
}

// chargeMessage charges for the SDK's answer to a message, which has no more copies.
func (s *Server) chargeMessage(x *exchange, body []byte, changed bool) error {
	if err := s.chargeAnswer(x, body, changed); err != nil {
		return err
	}
	if x.conn != nil {
		s.budget.lower(x.conn, answerPart, cap(body))
	}
	return nil
}
