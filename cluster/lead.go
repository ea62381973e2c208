package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// lead follows the group's leadership: it claims an epoch when it is gained, tells
// the Watcher, and takes everything back when it is lost. It runs until the group
// stops, and it alone calls the Watcher for this shard.
func (g *group) lead() {
	defer close(g.led)
	var (
		owned uint64
		spent uint64 // the newest epoch that was served and given up
		retry <-chan time.Time
	)
	for {
		stopping := false
		var request *handoverRequest
		select {
		case <-g.raft.LeaderCh():
		case <-retry:
		case <-g.failure:
		case request = <-g.handovers:
		case <-g.stopping:
			stopping = true
		}
		retry = nil
		failed := g.failed.Load() != nil
		// Raft's channel drops all but the latest change: a leadership lost and
		// regained meanwhile shows in its term only.
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
		case stopping || failed:
			g.commit.stop()
			g.lease.awaitRound()
			return
		case leads && term <= spent:
			// It could not be handed over, and this node is to serve on. Who served the
			// epoch may still propose in it, and must not be let in with its successor: an
			// election brings another epoch.
			g.tracking.triggerElection()
			retry = time.After(electRetry)
		case leads && owned == 0:
			if g.gain(term) {
				owned = term
			} else {
				retry = time.After(claimRetry)
			}
		}
	}
}

// claimRetry is how long after a claim that came to nothing the group looks
// whether it should claim again.
const claimRetry = 50 * time.Millisecond

// electRetry is how long after an election was asked for the group looks whether
// there was one. Its outcome shows sooner, as a change of leadership.
const electRetry = electionTimeout / 2

// gain claims the epoch and starts serving it; false when it came to nothing.
func (g *group) gain(epoch uint64) bool {
	future := g.raft.Apply(appendEntry(nil, entryClaim, epoch, g.node), 0)
	if err := future.Error(); err != nil {
		g.logger.Debug("claim an epoch", "epoch", epoch, "error", err)
		return false
	}
	answer, ok := future.Response().(*claimed)
	if !ok {
		g.logger.Debug("claim an epoch", "epoch", epoch, "answer", future.Response())
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
	if g.failed.Load() != nil { // failed at the same moment, and looked first
		g.epoch.Store(0)
	}
	g.watcher.Gained(g.shard, epoch)
	g.gained(g.shard, epoch)
	return true
}

// waitOutLease lets a lease run out that a predecessor may hold since before the claim.
// False when the leadership or the group ended meanwhile.
func (g *group) waitOutLease(epoch uint64) bool {
	// Clocks of two nodes do not run alike.
	timer := time.NewTimer(g.tuning.lease + g.tuning.lease/20)
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

// lose stops serving an epoch. With release, the log's end says so.
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
	g.commit.drain()
	// Nothing is answered any more, reads nor writes: a successor need not wait.
	future := g.raft.Apply(appendEntry(nil, entryRelease, epoch, ""), 0)
	err := future.Error()
	if err == nil {
		err, _ = future.Response().(error)
	}
	if err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
		g.logger.Warn("release a shard", "epoch", epoch, "error", err)
	}
}
