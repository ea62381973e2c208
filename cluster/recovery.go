package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// A cluster that has lost the majority of a shard's voters for good can't go on: no vote would be
// certain. The replicas that are left can be made a new cluster: of each shard the furthest one,
// with all of its log. Changes that were acknowledged can be missing then, and changes whose outcome
// nobody was told can be there.

// Remains are the replicas in the store of a node that does not run.
type Remains struct {
	Cluster, Node string
	Shards        int            // of workspaces, without the directory's
	Format        storage.Format // the rows are in this one at most
	Replicas      []Replica
}

// Replica is a replica of a shard on the disk of a node that does not run.
type Replica struct {
	Shard   storage.Shard
	Applied uint64 // newest log entry in the state
	// Last and Term are those of the newest entry in the state or the log. Of two replicas the one
	// with the higher term is further, and in the same term the one with the higher entry.
	Last, Term uint64
	// Voters are the nodes that decide in the shard, as far as this replica knows.
	Voters []string
	// Filling is set if the replica was being filled: its node may have acknowledged entries that it does
	// not have, by an earlier replica, and it may not know the voters of the entries that it has.
	Filling bool
}

// Further reports whether this replica of a shard is further than another one.
func (r *Replica) Further(than *Replica) bool {
	return r.Term > than.Term || r.Term == than.Term && r.Last > than.Last
}

// ReadRemains reads which replicas a store has. The store isn't changed.
func ReadRemains(store *storage.Store) (*Remains, error) {
	id, err := readIdentity(store)
	if err != nil {
		return nil, err
	}
	if err := id.readable(storage.FormatNewest); err != nil {
		return nil, err
	}
	r := &Remains{Cluster: id.Cluster, Node: id.Node, Shards: id.Shards, Format: id.promised()}
	for _, shard := range id.allShards() {
		replica, err := readReplica(store, shard)
		if err != nil {
			return nil, fmt.Errorf("read the replica of shard %d: %w", shard, err)
		}
		if replica != nil {
			r.Replicas = append(r.Replicas, *replica)
		}
	}
	return r, nil
}

// readReplica returns nil if there is no replica, one that was about to be deleted, or one that was
// created and got nothing yet.
func readReplica(store *storage.Store, shard storage.Shard) (*Replica, error) {
	dropping, err := raftstore.ReadRow(store.Raft(), raftstore.Key(shard, raftstore.KindDropping, nil))
	if err != nil || dropping != nil {
		return nil, err
	}
	if here, err := hasReplica(store.Raft(), shard); err != nil || !here {
		return nil, err
	}
	at, err := readPosition(store.State(), shard)
	if err != nil {
		return nil, err
	}
	log, err := raftstore.OpenLog(store.Raft(), shard)
	if err != nil {
		return nil, err
	}
	snapshots := raftstore.NewSnapshotStore(store, log, func() int64 { return 0 }, nil)
	newest, err := newestEntry(log, snapshots)
	if err != nil || newest.index == 0 && at.applied == 0 {
		return nil, err
	}
	to, err := readFillsTo(log, shard)
	if err != nil {
		return nil, err
	}
	r := &Replica{Shard: shard, Applied: at.applied, Last: at.applied, Term: at.epoch}
	// A state from another node is often ahead of the snapshot that it came with, and so of the log.
	r.Filling = to != nil && newest.before(*to) || newest.index < at.applied
	if r.Voters, err = lastVoters(log, snapshots); err != nil {
		return nil, err
	}
	first, last := log.Bounds()
	if last < at.applied || last == 0 {
		return r, nil // the state came from another node
	}
	if first > at.applied+1 {
		return nil, fmt.Errorf("its state is at entry %d and its log begins at %d", at.applied, first)
	}
	r.Last, r.Term = newest.index, newest.term
	return r, nil
}

// lastVoters returns the voters by the newest configuration in a log, or in its snapshot.
func lastVoters(log *raftstore.LogStore, snapshots *raftstore.SnapshotStore) ([]string, error) {
	var members raft.Configuration
	newest, err := snapshots.Latest()
	if err != nil {
		return nil, err
	}
	if newest != nil {
		members = newest.Configuration
	}
	first, last := log.Bounds()
	for index := max(first, 1); index <= last; index++ {
		var entry raft.Log
		if err := log.GetLog(index, &entry); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", index, err)
		}
		if entry.Type == raft.LogConfiguration {
			members = raft.DecodeConfiguration(entry.Data)
		}
	}
	var voters []string
	for _, server := range members.Servers {
		if server.Suffrage == raft.Voter {
			voters = append(voters, string(server.ID))
		}
	}
	return voters, nil
}

// TakeReplica makes a replica in the store of a stopped node that of the new cluster: its rows, and
// all entries of its log behind them. It returns the index of the last one.
func (c *Creation) TakeReplica(ctx context.Context, from *storage.Store, shard storage.Shard) (index uint64, err error) {
	if err := c.copyRows(ctx, from, shard); err != nil {
		return 0, fmt.Errorf("copy the rows of shard %d: %w", shard, err)
	}
	at, err := c.replay(ctx, from, shard)
	if err != nil {
		return 0, fmt.Errorf("apply the log of shard %d: %w", shard, err)
	}
	if at.epoch == 0 { // no node ever owned the shard, as far as the log goes: there are no rows
		return at.applied, c.TakeNothing(shard)
	}
	return at.applied, c.TakeOver(shard, at.applied, at.epoch)
}

func (c *Creation) copyRows(ctx context.Context, from *storage.Store, shard storage.Shard) (err error) {
	rows, err := from.ExportWith(ctx, shard, storage.ExportOptions{Wait: imageWait})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	into, err := c.store.Import(shard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	if _, err := io.Copy(into, rows); err != nil {
		return err
	}
	if err := into.Finish(ctx); err != nil {
		return err
	}
	return into.Ingest(ctx)
}

// replay applies the entries of a stopped node's log that its rows don't have.
func (c *Creation) replay(ctx context.Context, from *storage.Store, shard storage.Shard) (position, error) {
	machine, err := newStateMachine(c.store, shard, &flusher{})
	if err != nil {
		return position{}, err
	}
	log, err := raftstore.OpenLog(from.Raft(), shard)
	if err != nil {
		return position{}, err
	}
	_, last := log.Bounds()
	index := machine.at.applied
	err = machine.replay(ctx, func() (*raft.Log, error) {
		if index >= last {
			return nil, io.EOF
		}
		index++
		entry := &raft.Log{}
		if err := log.GetLog(index, entry); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", index, err)
		}
		return entry, nil
	})
	if err != nil {
		return position{}, err
	}
	return machine.at, nil
}

// TakeNothing makes a shard empty of which no replica is left, or none with a row. The directory can't be.
func (c *Creation) TakeNothing(shard storage.Shard) (err error) {
	if shard == storage.DirectoryShard {
		return errors.New("cluster: a cluster can't be made without its directory")
	}
	at := position{applied: 1, epoch: 1, settled: true}
	batch := c.store.State().NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	if err := batch.Set(positionKey(shard), at.append(nil), nil); err != nil {
		return fmt.Errorf("make shard %d: %w", shard, err)
	}
	if err := c.store.CommitState(batch); err != nil {
		return fmt.Errorf("make shard %d: %w", shard, err)
	}
	c.at[shard] = at
	return nil
}
