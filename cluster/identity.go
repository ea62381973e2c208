package cluster

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"switchyard/storage"
)

// identity is what a node is for good, kept in its raft instance.
type identity struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	Shards  int    `json:"shards"`
	// Founded: this node made the cluster's groups, or another one did. Until then
	// one that is not here has yet to be made.
	Founded bool `json:"founded"`
}

// founds tells whether this start makes the groups that are missing.
func (id identity) founds() bool { return !id.Founded }

// found notes that every group was made.
func (id *identity) found(db *pebble.DB) error {
	id.Founded = true
	row, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	if err := db.Set(raftKey(0, kindIdentity, nil), row, pebble.Sync); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	return nil
}

const identityFormat = 1

// identify reads what the node is, or decides it when the store is new.
func identify(cfg Config) (identity, error) {
	db := cfg.Store.Raft()
	key := raftKey(0, kindIdentity, nil)
	row, err := readRow(db, key)
	if err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	if row == nil {
		return decide(cfg, key)
	}
	var id identity
	if err := json.Unmarshal(row, &id); err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	switch {
	case id.Format != identityFormat:
		return identity{}, fmt.Errorf("cluster: the store was written by another version (identity format %d)", id.Format)
	case cfg.NodeName != "" && cfg.NodeName != id.Node:
		return identity{}, fmt.Errorf("cluster: the store belongs to node %q and can't be opened as %q", id.Node, cfg.NodeName)
	case cfg.Shards != 0 && cfg.Shards != id.Shards:
		return identity{}, fmt.Errorf("cluster: the store has %d shards, fixed when it was made, and can't be opened with %d", id.Shards, cfg.Shards)
	}
	return id, nil
}

func decide(cfg Config, key []byte) (identity, error) {
	it, err := cfg.Store.State().NewIter(nil)
	if err != nil {
		return identity{}, fmt.Errorf("look at the state: %w", err)
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return identity{}, fmt.Errorf("look at the state: %w", err)
	}
	if used {
		return identity{}, fmt.Errorf("cluster: the state holds data but the replication log is new: is raft/ missing?")
	}
	id := identity{Format: identityFormat, Node: cfg.NodeName, Shards: cfg.Shards}
	if id.Node == "" {
		id.Node = DefaultNodeName
	}
	if id.Shards == 0 {
		id.Shards = DefaultShards
	}
	if id.Shards < 1 || id.Shards > MaxShards {
		return identity{}, fmt.Errorf("cluster: %d shards; there may be 1 to %d", id.Shards, MaxShards)
	}
	random, err := uuid.NewRandom()
	if err != nil {
		return identity{}, fmt.Errorf("make a cluster id: %w", err)
	}
	id.Cluster = random.String()
	row, err := json.Marshal(id)
	if err != nil {
		return identity{}, fmt.Errorf("write the node's identity: %w", err)
	}
	if err := cfg.Store.Raft().Set(key, row, pebble.Sync); err != nil {
		return identity{}, fmt.Errorf("write the node's identity: %w", err)
	}
	return id, nil
}

// allShards lists the directory and the workspace shards.
func (id identity) allShards() []storage.Shard {
	out := make([]storage.Shard, id.Shards+1)
	for i := range out {
		out[i] = storage.Shard(i)
	}
	return out
}
