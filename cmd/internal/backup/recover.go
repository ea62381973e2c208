package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/storage"
)

// Recovering says what is left of a cluster, and where its data is made that of a new one.
type Recovering struct {
	From []string // data directories of nodes of one cluster, none of which runs
	// AcceptLoss allows what the plan says. Without it nothing is made.
	AcceptLoss bool
	Data       string // data directory of the new node; it must be empty
	Node       string // name of the new node; empty: the default
	Now        func() time.Time
	// Progress is told of each shard that is done; it may be nil.
	Progress func(done, shards int)

	disk vfs.FS // see openNew
}

// Recovery is what is made of what is left, or would be.
type Recovery struct {
	Former string // id of the cluster that was lost
	Shards []RecoveredShard
	// Cluster is the id of the new cluster; empty if nothing was made.
	Cluster string
	tracker.RestoreReport
}

// RecoveredShard is what is left of a shard.
type RecoveredShard struct {
	Shard int
	// Node is the one whose replica is furthest; empty if no replica is left.
	Node string
	Last uint64 // newest entry of the log there
	// Voters are the nodes that decided in the shard, and Left those of them that were found. Both are
	// empty if each replica that is left was being filled.
	Voters, Left []string
}

// Certain reports whether every acknowledged change is there: more than half of the voters are.
func (s *RecoveredShard) Certain() bool { return len(s.Left) > len(s.Voters)/2 }

// Certain reports whether every acknowledged change of all shards is there.
func (r *Recovery) Certain() bool {
	return !slices.ContainsFunc(r.Shards, func(s RecoveredShard) bool { return !s.Certain() })
}

// left is a node's directory.
type left struct {
	dir   string
	store *storage.Store
	*cluster.Remains
}

// Recover makes the data directory of the only node of a new cluster from what is left of one
// that has lost the majority of some shard's voters. Of each shard it takes the replica that is
// furthest. After an error the directory is empty again. Nothing is written to the directories
// that are left, beside what opening a store does.
func Recover(ctx context.Context, by Recovering) (_ *Recovery, err error) {
	var all []*left
	defer func() {
		for _, l := range all {
			err = errors.Join(err, l.store.Close())
		}
	}()
	for _, dir := range by.From {
		l, err := openLeft(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		if err := fits(all); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no data directory was given")
	}
	r := &Recovery{Former: all[0].Cluster}
	sources := make([]*left, all[0].Shards+1)
	for number := range sources {
		var s RecoveredShard
		s, sources[number] = furthest(all, number)
		r.Shards = append(r.Shards, s)
	}
	if sources[0] == nil {
		return r, errors.New("no replica of shard 0, the directory, is left: without it nobody knows the workspaces. Restore a backup")
	}
	if !by.AcceptLoss {
		return r, nil
	}
	err = r.make(ctx, &by, sources)
	return r, err
}

func openLeft(dir string) (*left, error) {
	if _, err := os.Stat(filepath.Join(dir, "raft")); err != nil { // opening a store would make one
		return nil, fmt.Errorf("%s is no node's data: %w", dir, err)
	}
	store, err := storage.OpenStopped(dir)
	if err != nil {
		return nil, err
	}
	remains, err := cluster.ReadRemains(store)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", dir, err), store.Close())
	}
	return &left{dir, store, remains}, nil
}

// fits returns an error if the last directory isn't of the same cluster as the first one, or of the
// same node as another one.
func fits(all []*left) error {
	last := all[len(all)-1]
	for _, l := range all[:len(all)-1] {
		switch {
		case l.Cluster != last.Cluster || l.Shards != last.Shards:
			return fmt.Errorf("%s is of cluster %s, and %s of cluster %s", l.dir, l.Cluster, last.dir, last.Cluster)
		case l.Node == last.Node:
			return fmt.Errorf("%s and %s are both of node %s: leave out the older one", l.dir, last.dir, l.Node)
		}
	}
	return nil
}

// furthest finds the furthest replica of a shard, and says what is left of it. A replica that was being
// filled can be the furthest: it has a part of its leader's log. But its node proves nothing about the
// entries behind it, and it may know only earlier voters. So the voters are those that the furthest one
// of the other replicas knows.
func furthest(all []*left, shard int) (s RecoveredShard, source *left) {
	s.Shard = shard
	var best, filled *cluster.Replica
	for _, l := range all {
		i := slices.IndexFunc(l.Replicas, func(r cluster.Replica) bool { return int(r.Shard) == shard })
		if i < 0 {
			continue
		}
		r := &l.Replicas[i]
		if best == nil || r.Further(best) {
			best, source = r, l
		}
		if r.Filling {
			continue
		}
		if filled == nil || r.Further(filled) {
			filled = r
		}
		s.Left = append(s.Left, l.Node)
	}
	if best == nil {
		return s, nil
	}
	s.Node, s.Last = source.Node, best.Last
	if filled != nil {
		s.Voters = filled.Voters
	}
	// A replica without a vote has what it was sent, and proves nothing.
	s.Left = slices.DeleteFunc(s.Left, func(node string) bool { return !slices.Contains(s.Voters, node) })
	return s, source
}

func (r *Recovery) make(ctx context.Context, by *Recovering, sources []*left) (err error) {
	made, err := emptyDir(by.Data)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(by.disk, by.Data, made))
		}
	}()
	ctx, data, err := openNew(ctx, by.Data, by.disk, true)
	if err != nil {
		return err
	}
	defer func() { err = data.close(err) }()
	store := data.Store
	shards := len(sources) - 1
	format := storage.FormatOldest
	for _, from := range sources {
		if from != nil {
			format = max(format, from.Format)
		}
	}
	creation, err := cluster.NewCreation(store, by.Node, shards, format)
	if err != nil {
		return err
	}
	for number, from := range sources {
		if from == nil {
			err = creation.TakeNothing(storage.Shard(number))
		} else {
			r.Shards[number].Last, err = creation.TakeReplica(ctx, from.store, storage.Shard(number))
		}
		if err != nil {
			return err
		}
		if by.Progress != nil {
			by.Progress(number+1, len(sources))
		}
	}
	if r.RestoreReport, err = agree(store, shards, by.Now(), tracker.Recovered); err != nil {
		return err
	}
	if r.Cluster, err = creation.Finish(); err != nil {
		return err
	}
	return data.made()
}
