package cluster

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// A node may get a replica of a shard that it had one of before: the replica was moved away and back, or
// another node had the same name. Members that were away meanwhile still have a configuration with the
// earlier voter, and so do the first entries of the log, which the new replica gets first. But the new one
// has neither the entries that the earlier one acknowledged nor its votes. If it voted, or stood for
// election, by such a configuration, it could help a member without acknowledged changes to lead.
//
// So a replica that was created empty is filling until its log has come to where the log of the group's
// leader was by then. It neither votes nor stands for election meanwhile, and it answers no leader of an
// earlier term. A log that reaches so far has the configuration without the earlier voter, and all that
// one acknowledged. A member becomes a voter after that only (see change).

// logPoint is a place in a group's log, as Raft compares logs. Places of later terms come later.
type logPoint struct{ term, index uint64 }

func (p logPoint) before(q logPoint) bool {
	return p.term < q.term || p.term == q.term && p.index < q.index
}

// fillsTo is the name of the row with the place up to which a replica is filling.
var fillsTo = []byte("FillsTo")

// fillingTimeout keeps Raft from standing for election.
const fillingTimeout = 1000 * time.Hour

// beginFilling records, before the member's first start, the place to which its log has to come.
func (g *group) beginFilling(to logPoint) error {
	row := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, to.term), to.index)
	if err := g.log.Stable().SetInTerm(fillsTo, row, to.term); err != nil {
		return err
	}
	g.filling.Store(&to)
	return nil
}

// readFilling reads that place when the replica is opened.
func (g *group) readFilling() error {
	to, err := readFillsTo(g.log, g.shard)
	g.filling.Store(to)
	return err
}

// readFillsTo reads the place up to which a shard's replica is filling; nil if it was never filling.
func readFillsTo(log *raftstore.LogStore, shard storage.Shard) (*logPoint, error) {
	row, err := log.Stable().Get(fillsTo)
	if err != nil || row == nil {
		return nil, err
	}
	if len(row) != 16 {
		return nil, fmt.Errorf("cluster: %s of shard %d has %d bytes", fillsTo, shard, len(row))
	}
	return &logPoint{binary.BigEndian.Uint64(row), binary.BigEndian.Uint64(row[8:])}, nil
}

// isFilling reports whether the log has not come to the place yet. A log that can't be read has not. The
// leader watchdog asks again and again, so that a member that is filled takes part in elections soon.
func (g *group) isFilling() bool {
	to := g.filling.Load()
	if to == nil {
		return false
	}
	at, err := newestEntry(g.log, g.snapshots)
	if err != nil || at.before(*to) {
		return true
	}
	if g.up.Load() && g.filling.CompareAndSwap(to, nil) {
		_ = g.setTimeouts(electionTimeout) // before it votes or leads, and sends heartbeats by them
	}
	return false
}

// newestEntry returns the place of the newest entry in a log or in its snapshot; the zero one if there is
// neither.
func newestEntry(log *raftstore.LogStore, snapshots *raftstore.SnapshotStore) (at logPoint, err error) {
	newest, err := snapshots.Latest()
	if err != nil {
		return at, err
	}
	if newest != nil {
		at = logPoint{newest.Term, newest.Index}
	}
	if _, last := log.Bounds(); last > at.index {
		var entry raft.Log
		if err := log.GetLog(last, &entry); err != nil {
			return at, fmt.Errorf("read entry %d: %w", last, err)
		}
		at = logPoint{entry.Term, last}
	}
	return at, nil
}
