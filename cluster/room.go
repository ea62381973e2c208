package cluster

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/s2"

	"switchyard/storage"
)

// errNoRoom is a follower's answer to changes that its disk has no room for.
var errNoRoom = errors.New("cluster: the node's disk has no room for changes")

// diskRoom is the room that a node's disk has for changes.
type diskRoom struct {
	spent func() bool   // Config.Spent
	spare func() uint64 // Config.Spare
	taken atomic.Uint64 // bytes taken of the spare room since there was room last
}

// none reports whether the disk has no room for changes.
func (d *diskRoom) none() bool { return d.spent != nil && d.spent() }

// take takes bytes of the spare room, and reports whether there are as many. They are given back when the
// disk has room again. The measured free space shrinks as well by what was taken, so less is taken
// than there is.
func (d *diskRoom) take(bytes uint64) bool {
	if d.spare == nil {
		return false
	}
	for {
		taken := d.taken.Load()
		if taken+bytes > d.spare() {
			return false
		}
		if d.taken.CompareAndSwap(taken, taken+bytes) {
			return true
		}
	}
}

// refill gives the spare room back: the disk has room again.
func (d *diskRoom) refill() {
	if d.taken.Load() != 0 {
		d.taken.Store(0)
	}
}

// refuseChanges refuses changes and snapshots while the disk has no room for them, and reports whether
// it did. A node that took them until its disk was full would have to stop, and all its shards would
// lose a member. So it stays a follower that falls behind: heartbeats go on, and the leader sends the
// entries, or the snapshot, again. A shard whose majority has no room commits no changes meanwhile. Its
// ownership may still change hands, which takes some bytes: nobody could read otherwise.
func (g *group) refuseChanges(rpc *raft.RPC) bool {
	switch asks := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if !slices.ContainsFunc(asks.Entries, changesRows) || g.takesChanges(asks) {
			return false
		}
		rpc.Respond(nil, errNoRoom)
		return true
	case *raft.InstallSnapshotRequest:
		if !g.room.none() {
			return false
		}
		refused := *rpc
		// The stream is read to its end, as Raft does, since the sender reads the answer after it. Other
		// requests of the group don't wait for that. The goroutine ends with the stream.
		go func() {
			_, _ = io.Copy(io.Discard, refused.Reader)
			refused.Respond(nil, errNoRoom)
		}()
		return true
	}
	return false
}

// takesChanges reports whether there is room for the changes of a request. Without room, changes of the
// leader's own term are refused. Those of earlier terms that are not known to be committed are taken as long
// as there is spare room: the leader had them in its log when it was elected, and its claim of the
// ownership is behind them. A shard whose followers refused them would have no owner, and would answer no
// reads. There are few of them, since no more than a few entries wait for their commit. Entries that the log has
// take no room: a leader whose answer was lost sends them again, as often as that happens.
func (g *group) takesChanges(asks *raft.AppendEntriesRequest) bool {
	if !g.room.none() {
		g.room.refill()
		return true
	}
	var bytes uint64
	for _, l := range asks.Entries {
		if !changesRows(l) || g.hasEntry(l) {
			continue
		}
		if isRefused(l, asks) {
			return false
		}
		bytes += diskBytes(l)
	}
	return bytes == 0 || g.room.take(bytes)
}

// isRefused reports whether a node without room refuses a change of a request however small it is, unless
// its log has it.
func isRefused(l *raft.Log, asks *raft.AppendEntriesRequest) bool {
	return l.Term >= asks.Term || l.Index <= asks.LeaderCommitIndex
}

// needsRoom reports whether a request has a change that a node without room refuses however small it is.
func needsRoom(asks *raft.AppendEntriesRequest) bool {
	return slices.ContainsFunc(asks.Entries, func(l *raft.Log) bool { return changesRows(l) && isRefused(l, asks) })
}

// hasEntry reports whether the log has an entry. Raft writes nothing for one that it has.
func (g *group) hasEntry(l *raft.Log) bool {
	var own raft.Log
	return g.log.GetLog(l.Index, &own) == nil && own.Term == l.Term
}

// changesRows reports whether an entry changes rows of the shard.
func changesRows(l *raft.Log) bool {
	return l.Type == raft.LogCommand && len(l.Data) > 0 && l.Data[0] != entryClaim && l.Data[0] != entryRelease
}

// diskBytes returns what an entry takes on the disk: in the log and, as rows, in the state.
func diskBytes(l *raft.Log) uint64 {
	rows := len(l.Data)
	if kind, _, body, err := splitEntry(l.Data); err == nil && kind == entryPacked {
		if size, err := s2.DecodedLen(body); err == nil {
			rows = size
		}
	}
	return uint64(len(l.Data) + rows)
}

// checkRoom returns errVotersFull if no change could be committed, since too few voters can take it: others
// have said that they have no room, or don't follow. Such a change would wait in the leader's log for the
// voters' disks, and its outcome would be unknown for as long.
func (g *group) checkRoom() error {
	if !g.owners.anyWithoutRoom() {
		return nil
	}
	voters, _, err := g.members()
	if err != nil {
		return nil // the group is stopping
	}
	able := 0
	for _, voter := range voters {
		if voter == g.node || g.owners.hasRoom(voter) && g.isFollowedBy(voter) {
			able++
		}
	}
	if able < len(voters)/2+1 {
		return errVotersFull
	}
	return nil
}

// HasRoom reports whether enough voters of a shard that this node owns have room for changes and follow. If
// not, Propose refuses all changes.
func (n *Node) HasRoom(shard storage.Shard) bool {
	g := n.group(shard)
	return g == nil || g.epoch.Load() == 0 || g.checkRoom() == nil
}

// slowVoter is how long a voter whose node answers may be silent in the group, or be unknown after an
// election, and counts as a follower all the same. It may only be slow.
const slowVoter = 2 * electionTimeout

// isFollowedBy reports whether a voter follows this leader, or is likely to.
func (g *group) isFollowedBy(voter string) bool {
	return g.tracking.isFollowed(g.raft.CurrentTerm(), raft.ServerID(voter), g.owners.answers(voter))
}

// isFollowed reports whether a member follows in a term. answers says whether its node answers.
func (w *trackingTransport) isFollowed(term uint64, id raft.ServerID, answers bool) bool {
	if !answers {
		_, follows := w.followerProgress(term, id, electionTimeout)
		return follows
	}
	_, follows := w.followerProgress(term, id, slowVoter)
	return follows || w.isNewTerm(term, slowVoter)
}

// isNewTerm reports whether no member has answered in a term yet, or the first one did so within a duration.
func (w *trackingTransport) isNewTerm(term uint64, within time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.term != term || w.leaseClock()-w.began <= int64(within)
}
