package cluster

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// proofRetry is how soon a round that proved nothing may be followed by another.
const verifyRetry = 10 * time.Millisecond

// verifyLeadership makes a round in which the voters confirm that this node leads in the
// epoch, and gives the moment from which that is certain. Raft is asked so that
// it sends heartbeats at once and fails when it is deposed; what was proven is
// read off the voters' answers.
func (g *group) verifyLeadership(epoch uint64, start int64) (from int64, err error) {
	if err := g.raft.VerifyLeader().Error(); err != nil {
		return 0, fmt.Errorf("ask for the followers' word: %w", err)
	}
	future := g.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return 0, fmt.Errorf("read the members: %w", err)
	}
	from, ok := g.tracking.provenSince(epoch, raft.ServerID(g.node), future.Configuration().Servers, start)
	if ok && from+g.lease.length > g.lease.clock() {
		return from, nil
	}
	// Raft took old answers for proof, or those of members without a vote. Readers
	// ask again until it finds out; that must not keep the processor busy.
	select {
	case <-time.After(verifyRetry):
	case <-g.stopping:
	}
	return from, nil
}
