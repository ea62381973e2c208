package actors

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// A change of a large record is in memory several times until it is committed: as the caller sent it, in
// the batch of its workspace, in the entry of the log, compressed, and in the batches that apply it. The
// changes of one workspace come one after another, and those of many workspaces at once would take as much
// memory as there are workspaces. So a command that is likely to be large waits until there is memory for
// it, in the order of arrival. Others wait only if there is far more in use than there should be: a command with
// a small body may change a large record, and that is known when it has run.

const (
	// largeBody is the size in bytes of a body from which a command is likely to be large.
	largeBody = 64 << 10
	// largeChange is the size in bytes from which what a command has written counts.
	largeChange = 256 << 10
	// changeCopies is how often a batch is in memory until it is committed. The space of a batch grows by
	// doubling.
	changeCopies = 4
	// bodyCopies is how many times its body a command takes while it runs and until it is committed, before
	// it is known what it writes. contentCopies is the same for bodies that are stored as they are.
	bodyCopies    = 2 * changeCopies
	contentCopies = changeCopies
	// farOver is how many times the bound is in use when all commands wait.
	farOver = 4
	// runningAtOnce is how many commands with small bodies run at a time, for each processor: what they write counts
	// when they have run. They may wait for the disk.
	runningAtOnce = 4
)

// changeMemory bounds the memory that large changes take on a node, in bytes.
type changeMemory struct {
	most int64

	mu      sync.Mutex   // guards the rest
	used    atomic.Int64 // read without the mutex, too
	waiting list.List    // of *changeTurn
}

// changeTurn is a workspace that waits for memory for its next command.
type changeTurn struct {
	bytes   int64
	granted func(*changeTurn)
	at      *list.Element // nil: granted
}

// take takes memory, if there is enough and nobody waits for some. Otherwise granted is called once, from any
// goroutine, when the memory is taken; the turn can be ended before and after that.
func (m *changeMemory) take(bytes int64, granted func(*changeTurn)) (turn *changeTurn, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting.Len() == 0 && m.fits(bytes) {
		m.used.Add(bytes)
		return nil, true
	}
	turn = &changeTurn{bytes: bytes, granted: granted}
	turn.at = m.waiting.PushBack(turn)
	return turn, false
}

// fits reports whether there is so much memory. A change that is larger than all of it is let in by itself.
func (m *changeMemory) fits(bytes int64) bool {
	used := m.used.Load()
	return used == 0 || used+bytes <= m.most
}

// change takes more memory, or gives some back. It never waits.
func (m *changeMemory) change(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Add(bytes)
	m.grant()
}

// end gives back the memory of a turn, or ends its wait.
func (m *changeMemory) end(turn *changeTurn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if turn.at != nil {
		m.waiting.Remove(turn.at)
	} else {
		m.used.Add(-turn.bytes)
	}
	m.grant()
}

// grant takes memory for those that wait. It is called with the mutex held.
func (m *changeMemory) grant() {
	for e := m.waiting.Front(); e != nil; e = m.waiting.Front() {
		turn := e.Value.(*changeTurn) //nolint:forcetypeassert // the list has nothing else
		if !m.fits(turn.bytes) {
			return
		}
		m.used.Add(turn.bytes)
		m.waiting.Remove(e)
		turn.at = nil
		turn.granted(turn)
	}
}

// isFarOver reports whether so much is in use that all commands wait.
func (m *changeMemory) isFarOver() bool { return m.used.Load() > farOver*m.most }

// changeShare is the part of the node's memory for changes that a workspace has. Its actor owns it.
type changeShare struct {
	memory *changeMemory
	batch  int64       // taken for the batch that is open, or being replicated
	next   int64       // taken for the next command
	turn   *changeTurn // that the workspace waits for; nil: it does not wait
	// last is what the last command with a small body wrote if that was large. Each that writes less
	// halves it.
	last int
}

// granted is the message that there is memory for the next command.
type granted struct{ *changeTurn }

// needs returns the memory that a command is likely to take; 0: little.
func (s *changeShare) needs(c *call) int64 {
	size := c.req.BodySize
	switch {
	case size < largeBody:
		return changeCopies * int64(s.last)
	case c.op.MaxWrites > 0:
		return contentCopies * int64(size)
	}
	return bodyCopies * int64(size)
}

// admits reports whether there is memory for a command, which is the next to run then. Otherwise turn is set,
// and granted is called when there is.
func (s *changeShare) admits(c *call, granted func(*changeTurn)) bool {
	need := s.needs(c)
	return need <= s.next || s.take(need, granted)
}

// admitsSmall does the same for a command of which it is not known that it is large. It is called when nothing but
// the command's run is left to do, also for a command that has waited: many may have been told at once.
func (s *changeShare) admitsSmall(granted func(*changeTurn)) bool {
	return !s.memory.isFarOver() || s.take(changeCopies*largeChange, granted)
}

func (s *changeShare) take(need int64, granted func(*changeTurn)) bool {
	s.giveNext()
	turn, ok := s.memory.take(need, granted)
	if !ok {
		s.turn = turn
		return false
	}
	s.next = need
	return true
}

// granted notes that there is memory for the next command.
func (s *changeShare) granted() { s.next, s.turn = s.turn.bytes, nil }

// ran counts what the open batch has after a command that wrote some of it.
func (s *changeShare) ran(c *call, wrote, size int) {
	switch {
	case c.req.BodySize >= largeBody:
	case wrote >= largeChange:
		s.last = wrote
	case s.last > 0:
		if s.last /= 2; s.last < largeBody {
			s.last = 0
		}
	}
	s.batch, s.next = s.batch+s.next, 0
	s.count(size)
}

// count counts a batch of a size.
func (s *changeShare) count(size int) {
	bytes := int64(0)
	if size >= largeChange {
		bytes = changeCopies * int64(size)
	}
	if more := bytes - s.batch; more != 0 {
		s.memory.change(more)
	}
	s.batch = bytes
}

// giveNext gives back the memory for the next command, if there is none.
func (s *changeShare) giveNext() {
	if s.next > 0 {
		s.memory.change(-s.next)
		s.next = 0
	}
}

// giveUp ends the wait for memory, and gives back that for the next command.
func (s *changeShare) giveUp() {
	s.giveNext()
	if s.turn != nil {
		s.memory.end(s.turn)
		s.turn = nil
	}
}

// close gives back all memory.
func (s *changeShare) close() {
	s.giveUp()
	s.memory.change(-s.batch)
	s.batch = 0
}
