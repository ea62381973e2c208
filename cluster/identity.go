package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// identity is what stays the same for a data directory: node, instance and cluster. The raft
// instance keeps it.
type identity struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"` // empty until the node formed or joined one
	Node    string `json:"node"`
	// Instance distinguishes data directories made under the same name: a directory that was wiped
	// becomes another instance.
	Instance string `json:"instance"`
	// Shards is fixed with the cluster. Before that it is the requested number, or 0 for any
	// number.
	Shards int `json:"shards"`
	// Founded is set when all groups of the cluster were created. Before that a missing group must
	// be created; afterwards a missing group was moved to other nodes.
	Founded bool `json:"founded"`
	// Promised is the newest format in which the cluster may write to this data directory: programs
	// that do not know it refuse to open the directory. Absent: storage.FormatFirst.
	Promised storage.Format `json:"promised,omitempty"`
	// Writes is the format in which the cluster writes. It is never above Promised, and never goes
	// down. Absent: storage.FormatFirst.
	Writes storage.Format `json:"writes,omitempty"`
}

// Formats of the identity. Format 1 had no instance and was always part of a cluster. Programs that
// refuse format 3 know no numbered formats.
const (
	identityNumbered    = 3
	identityUnnumbered  = 2
	identityNoInstances = 1
)

// promised returns Promised, also of an identity without one.
func (id identity) promised() storage.Format { return max(id.Promised, storage.FormatFirst) }

// writes returns Writes, also of an identity without one.
func (id identity) writes() storage.Format { return max(id.Writes, storage.FormatFirst) }

// readable returns an error if a program that reads the formats up to newest must not open the data
// directory.
func (id identity) readable(newest storage.Format) error {
	switch {
	case id.promised() > storage.FormatNewest:
		return fmt.Errorf("cluster: the data is in format %d, and this version of the program reads formats %d to %d: use the version that ran last, or a newer one",
			id.promised(), storage.FormatOldest, storage.FormatNewest)
	case id.writes() < storage.FormatOldest:
		return fmt.Errorf("cluster: the data is in format %d, and this version of the program reads formats %d to %d: run a version between the two first",
			id.writes(), storage.FormatOldest, storage.FormatNewest)
	case id.promised() > newest:
		return fmt.Errorf("cluster: the data is in format %d already: a --max-format of %d comes too late", id.promised(), newest)
	}
	return nil
}

// mustCreateGroups reports whether this start creates the missing groups.
func (id identity) mustCreateGroups() bool { return id.joined() && !id.Founded }

// markFounded records that every group was created.
func (id identity) markFounded(db *pebble.DB) (identity, error) {
	id.Founded = true
	err := id.write(db)
	return id, err
}

// joined reports whether the node belongs to a cluster. A node that does not holds no data.
func (id identity) joined() bool { return id.Cluster != "" }

// identify reads the node's identity, or makes one if the store is new. A new node with Config.Join
// gets its cluster later, see bootstrap; any other new node forms a cluster of one at once
// (Decision 52).
func identify(cfg Config) (identity, error) {
	if cfg.BootstrapExpect != 0 && len(cfg.Join) == 0 {
		return identity{}, errors.New("cluster: --bootstrap-expect needs --join: the addresses of the nodes to expect")
	}
	db := cfg.Store.Raft()
	row, err := raftstore.ReadRow(db, raftstore.Key(0, raftstore.KindIdentity, nil))
	if err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	if row == nil {
		return newIdentity(cfg)
	}
	id, err := parseIdentity(row)
	if err != nil {
		return identity{}, err
	}
	if err := id.readable(cmp.Or(cfg.MaxFormat, storage.FormatNewest)); err != nil {
		return identity{}, err
	}
	switch {
	case cfg.NodeName != "" && cfg.NodeName != id.Node:
		return identity{}, fmt.Errorf("cluster: the store belongs to node %q and can't be opened as %q", id.Node, cfg.NodeName)
	case id.joined() && cfg.Shards != 0 && cfg.Shards != id.Shards:
		return identity{}, fmt.Errorf("cluster: the store has %d shards, fixed when it was created, and can't be opened with %d", id.Shards, cfg.Shards)
	case !id.joined():
		// Only the name is fixed yet: the settings may have changed.
		if err := checkShards(cfg.Shards); err != nil {
			return identity{}, err
		}
		id.Shards = cfg.Shards
		if len(cfg.Join) == 0 {
			return id.form(db)
		}
	case id.Format != identityNoInstances:
		return id, nil
	}
	if id.Instance == "" {
		if id.Instance, err = randomID(); err != nil {
			return identity{}, err
		}
	}
	err = id.write(db)
	return id, err
}

func parseIdentity(row []byte) (identity, error) {
	var id identity
	if err := json.Unmarshal(row, &id); err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	if id.Format < identityNoInstances || id.Format > identityNumbered {
		return identity{}, fmt.Errorf("cluster: the store was written by another version (identity format %d)", id.Format)
	}
	return id, nil
}

func newIdentity(cfg Config) (identity, error) {
	it, err := cfg.Store.State().NewIter(nil)
	if err != nil {
		return identity{}, fmt.Errorf("look at the state: %w", err)
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return identity{}, fmt.Errorf("look at the state: %w", err)
	}
	if used {
		return identity{}, errors.New("cluster: the state holds data but the replication log is new: is raft/ missing?")
	}
	id := identity{Node: cfg.NodeName, Shards: cfg.Shards}
	if id.Node == "" {
		id.Node = DefaultNodeName
	}
	if err := membership.CheckNodeName(id.Node); err != nil {
		return identity{}, err
	}
	if err := checkShards(cfg.Shards); err != nil {
		return identity{}, err
	}
	if id.Instance, err = randomID(); err != nil {
		return identity{}, err
	}
	if len(cfg.Join) == 0 {
		return id.form(cfg.Store.Raft())
	}
	err = id.write(cfg.Store.Raft())
	return id, err
}

// form makes the node the first of a new cluster.
func (id identity) form(db *pebble.DB) (identity, error) {
	cluster, err := randomID()
	if err != nil {
		return identity{}, err
	}
	if id.Shards == 0 {
		id.Shards = DefaultShards
	}
	id.Cluster, id.Founded = cluster, false
	err = id.write(db)
	return id, err
}

// join makes the node a member of an existing cluster, for good.
func (id identity) join(db *pebble.DB, cluster string, shards int) (identity, error) {
	id.Cluster, id.Shards, id.Founded = cluster, shards, true
	err := id.write(db)
	return id, err
}

func (id *identity) write(db *pebble.DB) error {
	id.Format = identityUnnumbered
	if id.promised() >= storage.FormatNumbered {
		id.Format = identityNumbered
	}
	row, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	if err := db.Set(raftstore.Key(0, raftstore.KindIdentity, nil), row, pebble.Sync); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	return nil
}

// allShards lists the directory and the workspace shards.
func (id identity) allShards() []storage.Shard {
	out := make([]storage.Shard, id.Shards+1)
	for i := range out {
		out[i] = storage.Shard(i)
	}
	return out
}

// identityRow serializes the changes of the identity in the raft instance.
type identityRow struct {
	db *pebble.DB
	mu sync.Mutex
	id identity
}

// get returns the identity as it is now.
func (r *identityRow) get() identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// change replaces the identity by the result of to, which has written it.
func (r *identityRow) change(to func(identity, *pebble.DB) (identity, error)) (identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := to(r.id, r.db)
	if err == nil {
		r.id = id
	}
	return r.id, err
}

func randomID() (string, error) {
	random, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return random.String(), nil
}

// checkShards accepts 0 as well, for the default.
func checkShards(n int) error {
	if n < 0 || n > MaxShards {
		return fmt.Errorf("cluster: %d shards are not possible; use 1 to %d", n, MaxShards)
	}
	return nil
}
