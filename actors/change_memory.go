package actors

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// A change of a large record is in memory several times until it is committed: as the caller sent it, in
// the batch of its workspace, in the entry of the log, compressed, and in the batches that apply it. The
// changes of one workspace come one after another, and those of many workspaces at once would take as much
// memory as there are workspaces. So a command that is likely to be large waits until the large ones have given back
// enough, in the order of arrival. Others wait only if there is far more in use than there should be: a command with
// a small body may change a large record, and that is known when it has run. Large commands do not wait for what those
// have written, as long as it is not far too much: a load of them would keep large ones waiting for ever.

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
	// farOver is how many times the bound of large commands is in use when all commands wait.
	farOver = 4
	// runningAtOnce is how many commands with small bodies run at a time where more than the bound is in use, for each
	// processor: what they write counts when they have run. They may wait for the disk.
	runningAtOnce = 4
)

// changeMemory bounds the memory that large changes take on a node, in bytes.
type changeMemory struct {
	most int64 // of large commands

	mu    sync.Mutex   // guards the rest
	used  atomic.Int64 // by all; read without the mutex, too
	large int64        // of that, by large commands
	// largeTurns and smallTurns are those that wait, of *changeTurn.
	largeTurns, smallTurns list.List
}

// changeUse is the memory that commands take, in bytes.
type changeUse struct {
	all, large int64 // large is the part of large commands, and of what came with them into a batch
}

// changeTurn is a workspace that waits for memory for its next command.
type changeTurn struct {
	use     changeUse
	granted func(*changeTurn)
	in      *list.List    // of those that wait
	at      *list.Element // nil: granted
}

// take takes memory, if there is enough and nobody waits for some. Otherwise granted is called once, from any
// goroutine, when the memory is taken; the turn can be ended before and after that. A turn that is to be the next
// waits in front of the others.
func (m *changeMemory) take(use changeUse, next bool, granted func(*changeTurn)) (turn *changeTurn, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	turn = &changeTurn{use: use, granted: granted, in: &m.smallTurns}
	if use.large > 0 {
		turn.in = &m.largeTurns
	}
	if turn.in.Len() == 0 && m.fits(use) {
		m.count(use, 1)
		return nil, true
	}
	if next {
		turn.at = turn.in.PushFront(turn)
	} else {
		turn.at = turn.in.PushBack(turn)
	}
	return turn, false
}

// fits reports whether there is so much memory. A large command that needs more than all of it is let in when no other
// large one is there.
func (m *changeMemory) fits(use changeUse) bool {
	return !m.isFarOver(0) && (use.large == 0 || m.large == 0 || m.large+use.large <= m.most)
}

// count adds to what is in use so many times. It is called with the mutex held.
func (m *changeMemory) count(use changeUse, times int64) {
	m.used.Add(times * use.all)
	m.large += times * use.large
}

// change takes more memory, or gives some back. It never waits.
func (m *changeMemory) change(from, to changeUse) {
	if from == to {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(from, -1)
	m.count(to, 1)
	m.grant()
}

// end ends the wait of a turn, or gives back its memory.
func (m *changeMemory) end(turn *changeTurn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if turn.at != nil {
		turn.in.Remove(turn.at)
	} else {
		m.count(turn.use, -1)
	}
	m.grant()
}

// grant takes memory for those that wait, large commands first: they have a bound of their own, so there is some left for
// the others. It is called with the mutex held.
func (m *changeMemory) grant() {
	for _, turns := range [...]*list.List{&m.largeTurns, &m.smallTurns} {
		for e := turns.Front(); e != nil; e = turns.Front() {
			turn := e.Value.(*changeTurn) //nolint:forcetypeassert // the list has nothing else
			if !m.fits(turn.use) {
				break
			}
			m.count(turn.use, 1)
			turns.Remove(e)
			turn.at = nil
			turn.granted(turn)
		}
	}
}

// isFarOver reports whether so much is in use, without a workspace's own, that all commands wait.
func (m *changeMemory) isFarOver(own int64) bool { return m.used.Load()-own > farOver*m.most }

// isOver reports whether more is in use than there should be.
func (m *changeMemory) isOver() bool { return m.used.Load() > m.most }

// changeShare is the part of the node's memory for changes that a workspace has. Its actor owns it.
type changeShare struct {
	memory *changeMemory
	batch  changeUse   // taken for the batch that is open, or being replicated
	next   changeUse   // taken for the next command
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
	return need <= s.next.all || s.take(changeUse{need, need}, granted)
}

// admitsSmall does the same for a command of which it is not known that it is large. It is called when nothing but
// the command's run is left to do, also for a command that has waited: many may have been told at once. Such a command
// is the next one then.
func (s *changeShare) admitsSmall(granted func(*changeTurn)) bool {
	return !s.memory.isFarOver(s.next.all) || s.take(changeUse{all: changeCopies * largeChange}, granted)
}

func (s *changeShare) take(need changeUse, granted func(*changeTurn)) bool {
	waited := s.next.all > 0
	s.giveNext()
	turn, ok := s.memory.take(need, waited, granted)
	if !ok {
		s.turn = turn
		return false
	}
	s.next = need
	return true
}

// granted notes that there is memory for the next command.
func (s *changeShare) granted() { s.next, s.turn = s.turn.use, nil }

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
	s.batch.all, s.batch.large, s.next = s.batch.all+s.next.all, s.batch.large+s.next.large, changeUse{}
	s.count(size)
}

// count counts a batch of a size.
func (s *changeShare) count(size int) {
	use := changeUse{}
	if size >= largeChange {
		use.all = changeCopies * int64(size)
		if s.batch.large > 0 {
			use.large = use.all
		}
	}
	s.memory.change(s.batch, use)
	s.batch = use
}

// giveNext gives back the memory for the next command, if there is none.
func (s *changeShare) giveNext() {
	s.memory.change(s.next, changeUse{})
	s.next = changeUse{}
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
	s.memory.change(s.batch, changeUse{})
	s.batch = changeUse{}
}
