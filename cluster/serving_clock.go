package cluster

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// servingClock is the clock by which a node serves its shards. It follows the machine's time of day, but
// for a jump that the other nodes have not confirmed: then the time goes on as before the jump, by the
// monotonic clock.
//
// A node whose clock is off leaves its shards to others, see peerClocks, but that takes seconds. With
// the wrong time an owner would need only a moment to end leases and holds early, to cancel sessions, to
// forget idempotency keys, and to write leases that its successor finds expired.
//
// A jump may be right: the time of day of a machine that was suspended jumps when the machine goes on. The
// next heartbeats show that.
type servingClock struct {
	// read returns the time of the machine and its parts in nanoseconds: the monotonic clock, and the time
	// of day.
	read   func() (t time.Time, monotonic, day int64)
	peers  *peerClocks
	logger *slog.Logger

	known atomic.Pointer[knownTime]
	held  atomic.Bool // the time of day has jumped, and the jump is not followed

	mu     sync.Mutex    // held while a jump is judged
	to     int64         // what ahead would be after the jump
	since  time.Time     // when the jump was noticed
	asked  int64         // when the time was asked for last, by the monotonic clock
	waited time.Duration // for other nodes, without the times in which this process was paused
	wrong  bool          // most of those that said something said that the jump is wrong
}

// knownTime is a time before a jump that is not followed. The time that is served by goes on from it.
type knownTime struct {
	t         time.Time
	monotonic int64
	ahead     int64 // of the time of day, compared with the monotonic clock
}

// judgeTime is how long a node waits for others to say whether a jump is right.
const judgeTime = 10 * heartbeatInterval

// clockDrift is the least change of the time of day after which a new time is known. It only keeps one from being
// stored at each reading.
const clockDrift = int64(10 * time.Millisecond)

// newServingClock returns the clock of a node. The times of clock have a monotonic clock reading.
func newServingClock(clock func() time.Time, peers *peerClocks, logger *slog.Logger) *servingClock {
	base := clock()
	return newServingClockOf(func() (t time.Time, monotonic, day int64) {
		t = clock()
		return t, int64(t.Sub(base)), t.UnixNano()
	}, peers, logger)
}

func newServingClockOf(read func() (t time.Time, monotonic, day int64), peers *peerClocks, logger *slog.Logger) *servingClock {
	c := &servingClock{read: read, peers: peers, logger: logger}
	t, monotonic, day := read()
	c.known.Store(&knownTime{t, monotonic, day - monotonic})
	return c
}

// now returns the time. Its monotonic clock reading is the machine's, also while a jump is not followed: the time
// between two readings is right whatever happens in between.
func (c *servingClock) now() time.Time {
	t, monotonic, day := c.read()
	known := c.known.Load()
	change := day - monotonic - known.ahead
	if isJump(change) || c.held.Load() {
		return c.judge()
	}
	if change > clockDrift || change < -clockDrift {
		c.known.CompareAndSwap(known, &knownTime{t, monotonic, day - monotonic}) // a jump may have been followed meanwhile
	}
	return t
}

// isJump reports whether a change of the time of day needs the confirmation of the other nodes.
func isJump(change int64) bool {
	return change > int64(clockTolerance) || change < -int64(clockTolerance)
}

// judge returns the time while it is not certain whether the time of day is right.
func (c *servingClock) judge() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, monotonic, day := c.read() // another goroutine may have followed the jump
	to, known := day-monotonic, c.known.Load()
	change := time.Duration(to - known.ahead)
	if !isJump(int64(change)) { // nothing has jumped any more
		if c.held.Swap(false) {
			c.logger.Info("the time of day of this node is right again")
		}
		c.known.Store(&knownTime{t, monotonic, to})
		return t
	}
	if !c.held.Load() || isJump(to-c.to) { // this one is new
		c.to, c.since, c.waited, c.wrong = to, t, 0, false
	} else {
		c.waited += min(time.Duration(monotonic-c.asked), heartbeatInterval)
	}
	c.asked = monotonic
	after, before, others := c.peers.judge(c.since, change)
	if after+before > 0 {
		if before <= after && c.wrong { // they have changed their minds, and may do so again
			c.waited = 0
		}
		c.wrong = before > after
	}
	// The first answer may be that of the only other node whose clock is wrong, too.
	confirmed := after > before && (after > others/2 || c.waited > 2*heartbeatInterval)
	if others == 0 || confirmed || !c.wrong && c.waited > judgeTime {
		c.held.Store(false)
		c.known.Store(&knownTime{t, monotonic, to})
		c.logger.Warn("the time of day of this node has jumped", "by", change.Round(time.Millisecond), "nodes_that_agree", after)
		return t
	}
	if !c.held.Swap(true) {
		c.logger.Warn("the time of day of this node has jumped: the time before goes on until other nodes confirm the new one",
			"by", change.Round(time.Millisecond))
	}
	return known.t.Add(time.Duration(monotonic - known.monotonic))
}

// Now returns the time by which this node serves its shards: the time of day, but for jumps that other nodes
// have not confirmed.
func (n *Node) Now() time.Time { return n.now() }
