package httpapi

// A part of an event stream is charged as an answer is, from before it is sent until the
// connection has taken all of it: the whole part, because its memory is kept for the rest.
// A part can wait in the log, and other requests can't. So the parts of a workspace get no
// more while it holds half of its bound, and a part that there are no bytes for is sent
// later. Parts of up to freeBytes are not charged.

// partTimeouts is how many times Config.WriteTimeout the client may take for a charged part
// when another of that size would have to wait: as long as for 128 KiB, which is the size of
// a part of several events.
const partTimeouts = 4

// streamParts has the accounts that the parts of a stream are charged to.
type streamParts struct {
	to, from account
	// short is set while the next part waits for its bytes. Owned by the caller of reserve.
	short bool
}

// reserve charges for a part of a stream, or reports that it must wait. A part that waits is
// counted as one refusal.
func (b *budget) reserve(c *conn, s *streamParts, size int) bool {
	if size <= freeBytes {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := b.chargeOf(size)
	if bound := b.overWith(s, bytes); bound != "" {
		if !s.short {
			s.short = true
			b.refused(bound)
		}
		return false
	}
	s.short = false
	if c.owed.to != s.to || c.owed.from != s.from {
		b.transfer(c, s.to, s.from)
	}
	b.add(s.to, s.from, bytes)
	c.owed.bytes[answerPart] += bytes
	c.owes.Store(true)
	return true
}

// lacks reports whether another part of that size would have to wait.
func (b *budget) lacks(s *streamParts, size int) bool {
	if size <= freeBytes {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.overWith(s, b.chargeOf(size)) != ""
}

// chargeOf returns what is charged for a part: no more than half of a bound, so that each
// part can be sent when nothing else is in flight.
func (b *budget) chargeOf(size int) int64 {
	bytes := int64(size)
	for _, bound := range [...]int64{b.limits.Bytes, b.limits.WorkspaceBytes} {
		if bound > 0 {
			bytes = min(bytes, bound/2)
		}
	}
	return bytes
}

// overWith names the bound that the parts of a stream would be over with more bytes; empty:
// none.
func (b *budget) overWith(s *streamParts, more int64) string {
	if limit := b.limits.WorkspaceBytes; limit > 0 && s.to.kind == workspaceAccount && b.by[s.to]+more > limit/2 {
		return boundWorkspaceBytes
	}
	return b.over(&owed{to: s.to, from: s.from}, more, false)
}
