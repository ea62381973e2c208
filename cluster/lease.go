package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// lease is a shard owner's proof that no newer owner answers anything yet. It is
// renewed by a round in which a quorum confirms the leadership, and counts from
// the moment at which the oldest of the messages was SENT that the quorum
// answered: a successor, elected after it, waits longer before it answers.
//
// Rounds run on demand, one at a time, on a goroutine of their own: when a reader
// finds the lease expired, and ahead of that when a reader finds it close to its
// end. Without readers nothing runs.
type lease struct {
	length int64        // nanoseconds
	clock  func() int64 // monotonic nanoseconds, never 0 while a lease is valid
	// verify makes a quorum round that began at start, and gives the moment from which
	// its proof counts, which may be an earlier one.
	verify func(epoch uint64, start int64) (from int64, err error)
	until  atomic.Int64 // 0: no lease

	renewing atomic.Bool    // a renewal was asked for
	rounds   sync.WaitGroup // the round that runs

	mu    sync.Mutex
	epoch uint64 // 0: not the owner
	round *leaseRound
}

// leaseRound is a round that runs, for all readers that wait for it.
type leaseRound struct {
	done chan struct{}
	err  error
}

// beginEpoch starts an ownership: reads may be answered from now on, each proof given.
func (l *lease) beginEpoch(epoch uint64) {
	l.mu.Lock()
	l.epoch = epoch
	l.mu.Unlock()
}

// endEpoch ends the ownership: no read is answered any more.
func (l *lease) endEpoch() {
	l.mu.Lock()
	l.epoch = 0
	l.until.Store(0)
	l.mu.Unlock()
}

// awaitRound returns when no round runs; the lease must be shut.
func (l *lease) awaitRound() { l.rounds.Wait() }

// barrier returns nil when a read started now sees every acknowledged write. The
// hot path is one atomic load and a look at the clock.
func (l *lease) barrier(deadline time.Time) error {
	left := l.until.Load() - l.clock()
	if left > l.length/3 {
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

// renew starts a round while the lease is still valid.
func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == 0 {
		l.renewing.Store(false)
		return
	}
	l.currentRound()
}

// wait shares rounds until one has given a lease that is valid now; a zero
// deadline waits as long as rounds take.
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
		if l.clock() < l.until.Load() {
			l.mu.Unlock()
			return nil
		}
		// A round that began before this reader came serves it too: what counts is
		// that its lease has not run out when it is used.
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

// currentRound gives the round that runs, or starts one. l.mu is held.
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
	// A round that outlived its ownership proves nothing about the next one.
	if err == nil && l.epoch == epoch {
		l.until.Store(max(l.until.Load(), from+l.length))
	}
	l.mu.Unlock()
	close(round.done)
}
