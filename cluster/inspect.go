package cluster

import (
	"context"
	"errors"
	"fmt"

	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// Schema declares the rows that this package keeps in each shard's own range, for the verifier and
// the golden file of the layout.
func Schema() *storage.Schema {
	return &storage.Schema{Rows: []storage.RowSpec{{
		ID: positionTable, Name: "position",
		Check: func(_ *storage.View, _, value []byte) error {
			_, err := parsePosition(value)
			return err
		},
	}, {
		ID: membership.Table, Name: "nodes",
		Check: func(_ *storage.View, fields, value []byte) error { return membership.CheckRow(fields, value) },
	}}}
}

// Inspection shows the store of a stopped node.
type Inspection struct {
	Cluster, Node string
	Instance      string            // tells data directories of one name apart
	Shards        []ShardInspection // the directory's first
}

// ShardInspection shows the position of a shard's state on disk.
type ShardInspection struct {
	Shard   storage.Shard
	Applied uint64 // newest log entry in the state
	Epoch   uint64 // claimed last
	Owner   string // the node that claimed it
	// Released is set if the owner stopped answering before its last entry, as in a graceful stop.
	Released bool
}

// Inspect reads the identity and the shards' positions from the store of a node that does not run.
func Inspect(store *storage.Store) (Inspection, error) {
	id, err := readIdentity(store)
	if err != nil {
		return Inspection{}, err
	}
	seen := Inspection{Cluster: id.Cluster, Node: id.Node, Instance: id.Instance}
	for _, shard := range id.allShards() {
		s := ShardInspection{Shard: shard}
		row, err := raftstore.ReadRow(store.State(), positionKey(shard))
		if err != nil {
			return Inspection{}, fmt.Errorf("read the position of shard %d: %w", shard, err)
		}
		if row != nil {
			at, err := parsePosition(row)
			if err != nil {
				return Inspection{}, fmt.Errorf("shard %d: %w", shard, err)
			}
			s.Applied, s.Epoch, s.Owner, s.Released = at.applied, at.epoch, at.owner, at.released
		}
		seen.Shards = append(seen.Shards, s)
	}
	return seen, nil
}

// ReadPart reads of which shards the store of a node that does not run has no rows: the node has no replica of
// them, one that is being deleted, or one that has applied nothing yet.
func ReadPart(store *storage.Store) (storage.Part, error) {
	id, err := readIdentity(store)
	if err != nil {
		return storage.Part{}, err
	}
	part := storage.Part{Shards: id.Shards}
	for _, shard := range id.allShards() {
		has, err := hasRows(store, shard)
		if err != nil {
			return storage.Part{}, fmt.Errorf("look for the rows of shard %d: %w", shard, err)
		}
		if !has {
			part.Lacks = append(part.Lacks, shard)
		}
	}
	return part, nil
}

// hasRows reports whether the store must have rows of a shard. A log that does not begin with the first entry
// says so as well, even if the rows are lost. The error is that of a start if state and log do not belong together.
func hasRows(store *storage.Store, shard storage.Shard) (bool, error) {
	dropping, err := raftstore.ReadRow(store.Raft(), raftstore.Key(shard, raftstore.KindDropping, nil))
	if err != nil || dropping != nil {
		return false, err
	}
	row, err := raftstore.ReadRow(store.State(), positionKey(shard))
	if err != nil {
		return false, err
	}
	var at position
	if row != nil {
		if at, err = parsePosition(row); err != nil {
			return true, nil // the verifier reports the row
		}
	}
	log, err := raftstore.OpenLog(store.Raft(), shard)
	if err != nil {
		return false, err
	}
	snapshots := raftstore.NewSnapshotStore(store, log, func() int64 { return 0 }, nil)
	install, err := snapshots.Installing()
	if err != nil {
		return false, err
	}
	if install == nil || at.applied < install.Index { // else the state is newer than the snapshot that the log has
		if err := snapshots.CheckState(at.applied); err != nil {
			return false, err
		}
	}
	first, _ := log.Bounds()
	return row != nil || first > 1, nil
}

// readIdentity reads the identity of a node that is a member of a cluster and does not run.
func readIdentity(store *storage.Store) (identity, error) {
	row, err := raftstore.ReadRow(store.Raft(), raftstore.Key(0, raftstore.KindIdentity, nil))
	if err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	if row == nil {
		return identity{}, errors.New("no node has run on this data yet")
	}
	id, err := parseIdentity(row)
	if err == nil && !id.joined() {
		err = errors.New("the node has joined no cluster yet")
	}
	return id, err
}

// Fingerprint returns a checksum of a shard's rows without the position: replicas with the same
// writes may have applied different numbers of entries.
func Fingerprint(ctx context.Context, store *storage.Store, shard storage.Shard) (storage.Fingerprint, error) {
	return storage.FingerprintOf(ctx, store.State(), shard, positionKey(shard))
}
