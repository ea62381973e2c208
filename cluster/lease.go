package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// lease is the owner's right to answer reads of a shard without asking the other voters. A quorum
// round renews it: the voters confirm the leadership, and the lease counts from the moment at which
// the oldest of the confirmed messages was SENT. A successor is elected, or answers reads, only when
// a lease has passed since that moment (silence.go).
//
// The answers to Raft's heartbeats prove as much as those of a round, so a reader that finds the lease
// expired or close to its end looks at them first. They suffice while heartbeats come and go. Rounds run
// on demand, one at a time, on a goroutine of their own. Without readers no rounds run.
type lease struct {
	length int64        // nanoseconds
	clock  func() int64 // that of the leader's leases, in nanoseconds
	// proven returns the moment from which a lease counts by the answers that are there at the moment now,
	// or false if they prove nothing. It does not block.
	proven func(epoch uint64, now int64) (from int64, ok bool)
	// verify makes a quorum round that began at start and returns the moment from which the lease
	// counts. That moment may be earlier than start.
	verify func(epoch uint64, start int64) (from int64, err error)
	until  atomic.Int64 // 0: no lease
	// open is set between beginEpoch and endEpoch. While it is, the lease may be extended at any moment, so
	// this member gives no vote.
	open atomic.Bool

	renewing atomic.Bool    // a reader has started a round ahead of time
	rounds   sync.WaitGroup // the round under way

	mu    sync.Mutex
	epoch uint64 // 0: not the owner
	round *leaseRound
}

// leaseRound is a quorum round under way; all waiting readers share it.
type leaseRound struct {
	done chan struct{}
	err  error
}

// beginEpoch starts an ownership: reads are answered from now on, once a round has confirmed the
// leadership.
func (l *lease) beginEpoch(epoch uint64) {
	l.mu.Lock()
	l.open.Store(true)
	l.epoch = epoch
	l.mu.Unlock()
}

// endEpoch ends the ownership: no read is answered from now on.
func (l *lease) endEpoch() {
	l.mu.Lock()
	l.epoch = 0
	l.until.Store(0)
	l.open.Store(false)
	l.mu.Unlock()
}

// awaitRound returns when no round is under way. The caller has ended the epoch.
func (l *lease) awaitRound() { l.rounds.Wait() }

// barrier returns nil when a read that starts now sees every acknowledged write. The fast path is
// one atomic load and one reading of the clock.
func (l *lease) barrier(deadline time.Time) error {
	left := l.until.Load() - l.clock()
	if left > l.reserve() {
		return nil
	}
	if left > 0 {
		if l.renewing.CompareAndSwap(false, true) {
			l.renew()
		}
		return nil
	}
	return l.wait(deadline)
}

// reserve is the rest of the lease at which it is renewed. An idle group's heartbeats are answered a
// little earlier: they go every three quarters of a lease (beatEvery).
func (l *lease) reserve() int64 { return l.length / 5 }

// extend makes the lease as long as the answers that are there allow, and returns what is left of it. The
// caller holds l.mu, and there is an epoch.
func (l *lease) extend() (left int64) {
	now := l.clock()
	if from, ok := l.proven(l.epoch, now); ok {
		l.until.Store(max(l.until.Load(), from+l.length))
	}
	return l.until.Load() - now
}

// renew extends the lease while it is still valid, or starts a round.
func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == 0 {
		l.renewing.Store(false)
		return
	}
	if l.extend() > l.reserve() {
		l.renewing.Store(false)
		return
	}
	l.currentRound()
}

// wait joins rounds until the lease is valid. A zero deadline means no limit.
func (l *lease) wait(deadline time.Time) error {
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	for {
		l.mu.Lock()
		if l.epoch == 0 {
			l.mu.Unlock()
			return errNotOwner
		}
		if l.extend() > 0 {
			l.mu.Unlock()
			return nil
		}
		// A round that began before this reader came serves it too: the lease only has to be valid
		// when it is used.
		round := l.currentRound()
		l.mu.Unlock()
		select {
		case <-round.done:
			if round.err != nil {
				return round.err
			}
		case <-late:
			return errDeadline
		}
	}
}

// currentRound returns the round under way, or starts one. The caller holds l.mu.
func (l *lease) currentRound() *leaseRound {
	if l.round == nil {
		l.round = &leaseRound{done: make(chan struct{})}
		l.rounds.Add(1)
		go l.run(l.round, l.epoch)
	}
	return l.round
}

func (l *lease) run(round *leaseRound, epoch uint64) {
	defer l.rounds.Done()
	start := l.clock()
	from, err := l.verify(epoch, start)
	if err != nil {
		round.err = &Error{message: "leadership could not be confirmed", notApplied: true, cause: err}
	}
	l.mu.Lock()
	l.round = nil
	l.renewing.Store(false)
	// A round that ends after its epoch proves nothing about the next epoch.
	if err == nil && l.epoch == epoch {
		l.until.Store(max(l.until.Load(), from+l.length))
	}
	l.mu.Unlock()
	close(round.done)
}
