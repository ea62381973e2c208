package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// lead follows the group's leadership. When this node gains it, lead claims an epoch and calls the
// Watcher; when the node loses it, lead stops serving. It runs until the group stops. No other
// goroutine calls the Watcher for this shard.
func (g *group) lead() {
	defer close(g.led)
	var (
		owned  uint64
		passed passing
		spent  uint64 // the newest epoch that was served and ended
		retry  <-chan time.Time
	)
	failure := g.failure
	for {
		stopping := false
		var request *handoverRequest
		select {
		case <-g.raft.LeaderCh():
		case <-retry:
		case <-failure:
			failure = nil
		case request = <-g.handovers:
		case <-g.stopping:
			stopping = true
		}
		retry = nil
		failed := g.failed.Load() != nil
		// Raft's channel keeps only the latest change. A leadership that was lost and regained in
		// between shows only in its term.
		leads, term := g.raft.State() == raft.Leader, g.raft.CurrentTerm()
		if owned != 0 && (stopping || failed || !leads || term != owned || request != nil) {
			last := stopping || request != nil && request.release
			g.lose(owned, last && leads && !failed && term == owned)
			spent, owned = owned, 0
		}
		if stopping && leads && !failed {
			g.transferBeforeStop()
		}
		if request != nil {
			request.done <- g.transfer(request.to)
			leads, term = g.raft.State() == raft.Leader, g.raft.CurrentTerm()
		}
		switch {
		case stopping:
			g.commit.close()
			g.lease.awaitRound()
			return
		case failed:
			if leads {
				// Nobody owns the shard until another voter leads. The voters don't know that this
				// one has failed: they may elect it again.
				if err := g.transfer(""); err != nil {
					g.logger.Warn("a failed replica leads its shard and found no successor", "error", err)
				}
				retry = time.After(electRetry)
			}
		case leads && term <= spent:
			// The transfer failed and this node is to serve on. Actors of the ended epoch may still
			// propose in it and must not be let in together with those of the next ownership, so an
			// election makes a new epoch.
			g.tracking.triggerElection()
			retry = time.After(electRetry)
		case leads && owned == 0 && g.passOn(&passed, term):
			retry = time.After(claimRetry)
		case leads && owned == 0:
			if g.gain(term) {
				owned = term
			} else {
				retry = time.After(claimRetry)
			}
		}
	}
}

// passing is a leadership that this node would rather leave to another voter.
type passing struct {
	term  uint64
	until int64 // when this node serves if nobody has taken it
	next  int64 // from when on a later leadership is passed on as well
}

const (
	// passTime is how long a leader looks for a voter that takes the leadership over, before it
	// serves itself: voters that follow are known some time after an election.
	passTime = 2 * electionTimeout
	// passAgain is the time between two leaderships that are passed on. A node that is elected
	// again within it serves: the others may find their clocks wrong, or be about to stop, too.
	passAgain = 30 * time.Second
)

// passOn hands a leadership on that was just won if this node should lead nothing. It returns false if
// this node is to serve.
func (g *group) passOn(p *passing, term uint64) bool {
	if !g.passesOn() {
		return false
	}
	now := g.tuning.clock()
	if p.term != term && now >= p.next {
		*p = passing{term, now + int64(passTime), now + int64(passAgain)}
	}
	if p.term != term || now > p.until {
		return false
	}
	if err := g.transfer(""); err != nil {
		g.logger.Debug("pass a leadership on", "error", err)
	}
	return true
}

// claimRetry is the pause after a failed claim.
const claimRetry = 50 * time.Millisecond

// electRetry is the wait for an election that was requested. A change of leadership ends the wait
// earlier.
const electRetry = electionTimeout / 2

// gain claims the epoch and starts serving it. It returns false if that failed.
func (g *group) gain(epoch uint64) bool {
	response, err := g.declare(appendEntry(nil, entryClaim, epoch, g.node))
	if err != nil {
		g.logger.Debug("claim an epoch", "epoch", epoch, "error", err)
		return false
	}
	answer, ok := response.(*claimed)
	if !ok {
		g.logger.Debug("claim an epoch", "epoch", epoch, "answer", response)
		return false
	}
	if !answer.settled && !g.waitOutLease(epoch) {
		return false
	}
	if !g.machine.guard.beginServing() { // deposed already: its state is being replaced
		return false
	}
	g.commit.beginEpoch(epoch)
	g.lease.beginEpoch(epoch)
	g.epoch.Store(epoch)
	if g.failed.Load() != nil { // failed at the same moment, and fail has stored 0 before
		g.epoch.Store(0)
	}
	g.watcher.Gained(g.shard, epoch)
	g.gained(g.shard, epoch)
	return true
}

// declare commits an entry that begins or ends an ownership, and returns the state machine's answer. If
// the disk takes nothing, this may be the only entry by which the watchdog finds out.
func (g *group) declare(entry []byte) (response any, err error) {
	began := g.tuning.clock()
	g.declaring.begin(began)
	defer g.declaring.endOf(began)
	future := g.propose(entry, 0)
	if err := future.Error(); err != nil {
		return nil, err
	}
	return future.Response(), nil
}

// waitOutLease waits until no lease that a predecessor may hold is valid, which after most elections
// is so at once. It returns false if the leadership or the group ended meanwhile.
func (g *group) waitOutLease(epoch uint64) bool {
	left := g.tracking.silence.left(epoch, g.tuning.clock(), g.tuning.leaseMargin())
	if left == 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(left))
	defer timer.Stop()
	for {
		over := false
		select {
		case <-timer.C:
			over = true
		case <-g.raft.LeaderCh():
		case <-g.failure:
			return false
		case <-g.stopping:
			return false
		}
		if g.raft.State() != raft.Leader || g.raft.CurrentTerm() != epoch {
			return false
		}
		if over {
			return true
		}
	}
}

// drainTime is how long a release waits for the entries before it, and then for its own commit. The followers
// may have no room for the entries. Without the release the successor waits until the leases of this owner have
// expired, which takes no longer.
const drainTime = electionTimeout

// lose stops serving an epoch. With release set, it writes Release to the log.
func (g *group) lose(epoch uint64, release bool) {
	g.epoch.Store(0)
	g.lease.endEpoch()
	g.commit.endEpoch()
	g.lost(g.shard, epoch)
	g.watcher.Lost(g.shard, epoch)
	g.machine.guard.endServing()
	if !release {
		return
	}
	if !g.commit.drain(drainTime) {
		g.logger.Info("a shard is not released: its last changes are not committed", "epoch", epoch)
		return
	}
	// Reads and writes are not answered any more, so a successor need not wait.
	if err := g.release(epoch); err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
		g.logger.Warn("release a shard", "epoch", epoch, "error", err)
	}
}

// errNotReleased is returned for a release that is not committed in time.
var errNotReleased = errors.New("cluster: the release is not committed")

// release writes to the log that this node has stopped to serve an epoch, and waits for the commit for
// drainTime at most. A leader goes on leading as long as a majority answers its heartbeats, although a voter
// among these may take no entries for hours.
func (g *group) release(epoch uint64) error {
	answered := make(chan error, 1)
	go func() { // ends with the leadership at the latest: lead gives it up, or holds an election
		response, err := g.declare(appendEntry(nil, entryRelease, epoch, ""))
		if err == nil {
			err, _ = response.(error)
		}
		answered <- err
	}()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case err := <-answered:
		return err
	case <-timer.C:
		return errNotReleased
	}
}
