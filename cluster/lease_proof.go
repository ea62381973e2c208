package cluster

import (
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"
)

// verifyRetry is the pause after a round that proved nothing.
const verifyRetry = 10 * time.Millisecond

// verifyLeadership makes a round in which the voters confirm that this node leads in the epoch. It
// returns the moment from which that is certain. VerifyLeader makes Raft send heartbeats at once
// and fails if the node was deposed; the moment comes from the voters' answers, which the tracking
// transport records.
func (g *group) verifyLeadership(epoch uint64, start int64) (from int64, err error) {
	end := g.tracking.beginRound()
	err = g.raft.VerifyLeader().Error()
	end()
	if err != nil {
		return 0, fmt.Errorf("verify the leadership: %w", err)
	}
	future := g.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return 0, fmt.Errorf("read the members: %w", err)
	}
	from, ok := g.tracking.provenSince(epoch, raft.ServerID(g.node), future.Configuration().Servers, start)
	if ok && from+g.lease.length > g.lease.clock() {
		return from, nil
	}
	if !ok {
		from = math.MinInt64 / 2 // nothing is proven
	}
	// Raft counted old answers, or answers of members without a vote. Readers repeat the round
	// until Raft notices; the pause keeps them from using up the processor.
	select {
	case <-time.After(verifyRetry):
	case <-g.stopping:
	}
	return from, nil
}

// provenLeadership returns the moment since which the answers that have come prove that this node leads in
// the epoch, or false. Its state is looked at after the answers: Raft changes it before it gives a vote in
// a newer term, so at that moment this node had given none either.
func (g *group) provenLeadership(epoch uint64, now int64) (from int64, ok bool) {
	members := g.raft.GetConfiguration()
	if members.Error() != nil {
		return 0, false
	}
	from, ok = g.tracking.provenSince(epoch, raft.ServerID(g.node), members.Configuration().Servers, now)
	return from, ok && g.raft.State() == raft.Leader && g.raft.CurrentTerm() == epoch
}
