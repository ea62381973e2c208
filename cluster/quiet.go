package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Raft tells a follower with the next entries which ones are committed, or else after CommitTimeout.
// It also waits that long before it looks again for a follower that lacks entries. It has a timer for
// each follower of each group, and an idle node with hundreds of groups would do little else. So
// CommitTimeout is long. The leader watchdog does both, for a group in which nothing was committed for
// a while: it tells the followers once, and it offers an empty entry where one of them lacks some. A
// follower that was not told says so in its answers to heartbeats.

const (
	// tellAfter is how long nothing was committed when the followers are told of the last entries.
	tellAfter = 2 * time.Second
	// offerAfter is how long nothing was committed when a follower is looked for that lacks entries.
	// Each further empty entry comes after twice the time, up to offerPause.
	offerAfter = electionTimeout * 5 / 8
	offerPause = 8 * time.Second
)

// untoldAfter is how long a follower's log goes on with the same entries that it does not know to be
// committed, when the follower has missed that its leader told it: it was away then, or it crashed
// after it was told. Raft does not keep the commit index.
const untoldAfter = 2 * tellAfter

// untoldWatch is a follower's view of the entries in its log that it does not know to be committed.
type untoldWatch struct {
	mu          sync.Mutex
	last, known uint64
	since       time.Time // when they were first seen
}

// report returns the entry that a follower reports to its leader as its last one. last is that of its
// log, known the last one that it has applied or knows to be committed. It reports known if it has
// missed that the others are committed: the leader then finds that the follower lacks entries, offers
// an empty one, and with it says what is committed.
func (u *untoldWatch) report(now time.Time, last, known uint64) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last != last || u.known != known {
		u.last, u.known, u.since = last, known, now
	}
	if now.Sub(u.since) >= untoldAfter {
		return min(last, known)
	}
	return last
}

// quietWatch is the leader watchdog's view of the entries that a leader has committed. Its zero value
// begins at the next look.
type quietWatch struct {
	committed uint64        // the newest one
	since     int64         // when it was first seen
	told      uint64        // the followers were told of the entries up to this one
	offered   int64         // when an empty entry was last offered
	pause     time.Duration // before the next one
}

// quietStep is one thing to do for a quiet group.
type quietStep int

const (
	quietNothing quietStep = iota
	quietTell              // tell the followers what is committed
	quietOffer             // append an empty entry
)

// look returns the step that is due. lacking reports whether a follower lacks entries by an answer to a
// request that was sent after a moment; nil: it is not looked for now.
func (q *quietWatch) look(now int64, committed uint64, lacking func(after int64) bool) quietStep {
	if committed != q.committed {
		q.committed, q.since = committed, now
		return quietNothing
	}
	quiet := now - q.since
	if lacking != nil && quiet >= int64(offerAfter) {
		switch {
		case !lacking(q.since):
			q.pause = 0
		case now-q.offered >= int64(q.pause):
			q.offered, q.pause = now, min(max(2*q.pause, offerAfter), offerPause)
			return quietOffer
		}
	}
	if q.told != committed && quiet >= int64(tellAfter) {
		q.told = committed
		return quietTell
	}
	return quietNothing
}

// checkFollowers looks after the followers of a leader in whose group nothing is committed. The leader
// watchdog calls it; beat says that followers that lack entries are looked for, too. The steps run on
// goroutines of steps, one at a time for each group.
func (g *group) checkFollowers(beat bool, steps *sync.WaitGroup) {
	if g.stepping.Load() {
		return
	}
	var lacking func(int64) bool
	if beat {
		lacking = g.tracking.lacking
	}
	committed := g.raft.CommitIndex()
	step := g.quiet.look(g.tuning.leaseClock(), committed, lacking)
	if step == quietNothing {
		return
	}
	g.stepping.Store(true)
	steps.Go(func() {
		defer g.stepping.Store(false)
		if step == quietOffer {
			g.appendEmpty()
		} else {
			g.tellCommitted(committed)
		}
	})
}

// tellCommitted tells all followers that the entries up to an index are committed.
func (g *group) tellCommitted(index uint64) {
	future := g.raft.GetConfiguration()
	if future.Error() != nil || len(future.Configuration().Servers) < 2 {
		return
	}
	term := g.raft.CurrentTerm()
	var entry raft.Log
	if err := g.log.GetLog(index, &entry); err != nil {
		return // the beginning of the log was deleted; followers learn of it with the next entry
	}
	// A leader that is deposed ceases to lead before its term changes: it led in the term.
	if g.raft.State() != raft.Leader || g.raft.CurrentTerm() != term {
		return
	}
	self := raft.ServerID(g.node)
	request := raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.node), Addr: g.tracking.EncodePeer(self, g.tracking.LocalAddr())},
		Term:      term, PrevLogEntry: index, PrevLogTerm: entry.Term, LeaderCommitIndex: index,
	}
	var tells sync.WaitGroup
	for _, server := range future.Configuration().Servers {
		if server.ID != self {
			tells.Go(func() { g.tracking.tell(server.ID, server.Address, &request) })
		}
	}
	tells.Wait()
}
