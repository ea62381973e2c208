package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// leaseClock is the clock by which a leader counts the age of its read lease. The monotonic clock
// stands still while the machine is suspended, but a lease must not: another member may be elected
// meanwhile. The time of day goes on, so when it jumps ahead of the monotonic clock, leaseClock
// jumps with it.
//
// A time of day that is set forward ends leases early, which costs a round. A time of day that is set
// back changes nothing. Only leaders use this clock: a follower that counted such a jump as silence of
// its leader would vote too early.
//
// A virtual machine whose time of day stands still, too, while it is paused, and is not set right
// when it goes on, escapes this clock.
type leaseClock struct {
	// read returns the monotonic clock and the time of day, read together, in nanoseconds.
	read func() (monotonic, day int64)

	ahead atomic.Int64 // of the time of day, compared with the monotonic clock, when it last jumped
	extra atomic.Int64 // the sum of all jumps forward

	mu sync.Mutex // held while a jump is noted
}

// clockJump is the least difference that counts as a jump. It is less than the margin between the
// end of a lease and the next owner's first answer.
const clockJump = int64(10 * time.Millisecond)

// newLeaseClock returns the clock of this process, which begins at 0. The times of now have a monotonic
// clock reading.
func newLeaseClock(now func() time.Time) *leaseClock {
	base := now()
	return newLeaseClockOf(func() (monotonic, day int64) {
		t := now()
		return int64(t.Sub(base)), t.UnixNano()
	})
}

func newLeaseClockOf(read func() (monotonic, day int64)) *leaseClock {
	c := &leaseClock{read: read}
	monotonic, day := read()
	c.ahead.Store(day - monotonic)
	return c
}

// now returns the time in nanoseconds.
func (c *leaseClock) now() int64 {
	monotonic, day := c.read()
	ahead := day - monotonic
	if jump := ahead - c.ahead.Load(); jump > clockJump || jump < -clockJump {
		c.jumped(ahead)
	}
	return monotonic + c.extra.Load()
}

// jumped takes note of a jump of the time of day. The sum changes first, so that no other reader
// misses a jump that is noted.
func (c *leaseClock) jumped(ahead int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if jump := ahead - c.ahead.Load(); jump > clockJump {
		c.extra.Add(jump)
	}
	c.ahead.Store(ahead)
}
