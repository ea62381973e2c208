package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// Creation makes the node of a new cluster from images of another cluster's shards, in a store
// that no node runs on:
//
//	Import of each shard -> TakeOver -> changes of the rows -> Finish
//
// A shard goes on at the index and in the epoch of its image, so that neither ever runs
// backwards for what is stored with it. Its log begins behind a snapshot at that index: a node
// that joins can't be brought up by the log alone, and gets the rows. The identity comes last.
// Until then the store has a mark (storage.Config.Making), by which it is refused.
type Creation struct {
	store  *storage.Store
	node   string
	shards int
	format storage.Format
	at     map[storage.Shard]position
}

// NewCreation begins to make a node. The store must be empty. The format is the one that the other
// cluster wrote.
func NewCreation(store *storage.Store, node string, shards int, format storage.Format) (*Creation, error) {
	if format < storage.FormatOldest || format > storage.FormatNewest {
		return nil, fmt.Errorf("cluster: data in format %d: this version of the program reads formats %d to %d", format, storage.FormatOldest, storage.FormatNewest)
	}
	if node == "" {
		node = DefaultNodeName
	}
	if err := membership.CheckNodeName(node); err != nil {
		return nil, err
	}
	if err := checkShards(shards); err != nil || shards == 0 {
		return nil, errors.Join(err, fmt.Errorf("cluster: a cluster of %d shards can't be made", shards))
	}
	return &Creation{store: store, node: node, shards: shards, format: format, at: map[storage.Shard]position{}}, nil
}

// TakeOver makes the rows that were imported for a shard those of the new cluster: nobody owns
// it, and the directory knows no nodes. index and epoch are those of the image.
func (c *Creation) TakeOver(shard storage.Shard, index, epoch uint64) (err error) {
	state := c.store.State()
	at, err := readPosition(state, shard)
	if err != nil {
		return fmt.Errorf("take over shard %d: %w", shard, err)
	}
	if at.applied != index || at.epoch != epoch || index == 0 || epoch == 0 {
		return fmt.Errorf("take over shard %d: its rows are at entry %d of epoch %d, not %d of %d", shard, at.applied, at.epoch, index, epoch)
	}
	at = position{applied: index, epoch: epoch, settled: true}
	batch := state.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	if err := batch.Set(positionKey(shard), at.append(nil), nil); err != nil {
		return fmt.Errorf("take over shard %d: %w", shard, err)
	}
	if shard == storage.DirectoryShard {
		if err := membership.Forget(batch); err != nil {
			return err
		}
	}
	if err := c.store.CommitState(batch); err != nil {
		return fmt.Errorf("take over shard %d: %w", shard, err)
	}
	c.at[shard] = at
	return nil
}

// Finish makes all of it durable, and the node the only one of a new cluster, whose id it returns.
func (c *Creation) Finish() (cluster string, err error) {
	id := identity{Node: c.node, Shards: c.shards, Founded: true, Promised: c.format, Writes: c.format}
	for _, shard := range id.allShards() {
		if _, ok := c.at[shard]; !ok {
			return "", fmt.Errorf("cluster: shard %d is missing", shard)
		}
	}
	if id.Instance, err = randomID(); err != nil {
		return "", err
	}
	if id.Cluster, err = randomID(); err != nil {
		return "", err
	}
	if err := c.store.FlushState(); err != nil {
		return "", err
	}
	for _, shard := range id.allShards() {
		if err := c.begin(shard); err != nil {
			return "", fmt.Errorf("begin the log of shard %d: %w", shard, err)
		}
	}
	if err := id.write(c.store.Raft()); err != nil {
		return "", err
	}
	return id.Cluster, nil
}

// begin makes a group of one voter whose log begins behind the image.
func (c *Creation) begin(shard storage.Shard) error {
	db, at := c.store.Raft(), c.at[shard]
	log, err := raftstore.OpenLog(db, shard)
	if err != nil {
		return err
	}
	// Raft's first election is in the term after this one, so the next epoch is higher than
	// every one before.
	if err := log.Stable().SetTerm(at.epoch); err != nil {
		return err
	}
	snapshots := raftstore.NewSnapshotStore(c.store, log, func() int64 { return 0 }, nil)
	return snapshots.Adopt(raftstore.SnapshotRow{SnapshotMeta: raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax,
		ID:      fmt.Sprintf("%d-%d-%d", shard, at.epoch, at.applied),
		Index:   at.applied, Term: at.epoch, ConfigurationIndex: at.applied,
		Configuration: raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(c.node), Address: raft.ServerAddress(c.node)}}},
	}})
}
