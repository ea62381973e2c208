package cluster

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// silence records for how long a member has heard from no leader. It spares a new owner the wait
// for a predecessor's read lease.
//
// A lease is proven by answers of a quorum, and counts from when their requests were sent. An
// election in a newer term has the votes of a quorum too, so at least one member both answered and
// voted later: after its vote it answers no older term. Each member votes only when it has heard
// from no leader for longer than a lease, or since its process began. So the lease was over when
// that member voted.
//
// Votes that a leadership transfer asks for are given at once. Their winner waits a lease out, and
// so does a member that was made to stand before its time.
type silence struct {
	// heard is when a request of a leader, or one to stand for election, came last. It is noted when
	// the request comes in, which is after it was sent and before it is answered.
	heard atomic.Int64
	// transfer is the newest term in which this member asked for votes for a leadership transfer.
	transfer atomic.Uint64
}

// note sees every request before Raft does. Requests come on several connections, and the goroutine of one
// may be held up behind the reading of the clock: a later time stays.
func (s *silence) note(rpc *raft.RPC, now int64) {
	switch rpc.Command.(type) {
	case *raft.AppendEntriesRequest, *raft.InstallSnapshotRequest, *raft.TimeoutNowRequest:
	default:
		return
	}
	for {
		last := s.heard.Load()
		if now <= last || s.heard.CompareAndSwap(last, now) {
			return
		}
	}
}

// transferred notes that votes were asked for in a term for a leadership transfer.
func (s *silence) transferred(term uint64) {
	for {
		last := s.transfer.Load()
		if term <= last || s.transfer.CompareAndSwap(last, term) {
			return
		}
	}
}

// since returns the time for which this member has heard nothing, in nanoseconds.
func (s *silence) since(now int64) int64 { return now - s.heard.Load() }

// left returns for how long a member that was elected in a term has to wait until no older lease,
// which lasts so long at most, is valid.
func (s *silence) left(term uint64, now, lease int64) int64 {
	if s.transfer.Load() >= term {
		return lease
	}
	return max(0, lease-s.since(now))
}

// leaseMargin returns the length of a lease and a margin for clocks of different speed.
func (t *tuning) leaseMargin() int64 { return int64(t.lease + t.lease/20) }

// tooEarly reports whether this member must not vote yet. It has heard from a leader within the
// length of a lease, or may hold a lease itself.
func (g *group) tooEarly() bool {
	return g.epoch.Load() != 0 || g.lease.open.Load() || g.tracking.silence.since(g.tuning.clock()) < g.tuning.leaseMargin()
}

// isEmpty reports whether this member has neither a log nor a snapshot. It was created to be added to
// its group, may be no voter, and may have had entries and votes before that it has forgotten. Raft
// takes it for the first member of a new group, which votes for any candidate.
func (g *group) isEmpty() bool {
	if _, last := g.log.Bounds(); last != 0 {
		return false
	}
	newest, err := g.snapshots.Latest()
	return err != nil || newest == nil
}

// refuseEarly answers a request for a vote that comes too early, and reports whether it did. A
// transfer's request never comes too early. For a member that is empty or filling every request does: no group
// is founded by votes, and a member becomes a voter when it has the log.
func (g *group) refuseEarly(rpc *raft.RPC) bool {
	switch rpc.Command.(type) {
	case *raft.RequestPreVoteRequest, *raft.RequestVoteRequest:
	default:
		return false
	}
	empty := g.isEmpty() || g.isFilling()
	early, term := true, uint64(0)
	if g.up.Load() {
		early, term = empty || g.tooEarly(), g.raft.CurrentTerm()
	}
	if !early {
		return false
	}
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.node), Addr: []byte(g.node)}
	switch asks := rpc.Command.(type) {
	case *raft.RequestPreVoteRequest:
		rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: header, Term: term}, nil)
		return true
	case *raft.RequestVoteRequest:
		if asks.LeadershipTransfer && !empty {
			return false
		}
		rpc.Respond(&raft.RequestVoteResponse{RPCHeader: header, Term: term}, nil)
		return true
	}
	return false
}
