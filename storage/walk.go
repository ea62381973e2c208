package storage

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Walk reads a whole state at one moment, workspace by workspace.
type Walk struct {
	db   pebble.Reader
	part Part
}

// Part names the shards of a cluster of which a state has no rows. The zero Part is that of a state with
// all shards.
type Part struct {
	Shards int // of workspaces, without the directory's
	Lacks  []Shard
}

// Lacks reports whether the state is known to have no rows of a shard: its node has no replica, or one that
// has applied nothing.
func (w *Walk) Lacks(shard Shard) bool { return slices.Contains(w.part.Lacks, shard) }

// LacksWorkspace reports whether the state is known to have no rows of a workspace's shard.
func (w *Walk) LacksWorkspace(workspace ID) bool {
	return len(w.part.Lacks) > 0 && w.Lacks(ShardOf(workspace, w.part.Shards))
}

// NewWalk walks the rows of db; give it a snapshot to see one moment.
func NewWalk(db pebble.Reader) *Walk { return &Walk{db: db} }

// Directory is a view of the service-wide directory.
func (w *Walk) Directory() *View {
	v := NewView(w.db, DirectoryShard, DirectoryID)
	return &v
}

// Workspace is a view of a workspace in its shard, whether it has rows or not.
func (w *Walk) Workspace(shard Shard, workspace ID) *View {
	v := NewView(w.db, shard, workspace)
	return &v
}

// Shards lists the shards that have any row, in order.
func (w *Walk) Shards() ([]Shard, error) {
	it, err := w.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		return nil, fmt.Errorf("open an iterator: %w", err)
	}
	defer func() { _ = it.Close() }()
	var shards []Shard
	for ok := it.First(); ok; {
		shard, _, _, _, err := SplitKey(it.Key())
		if err != nil {
			ok = it.Next()
			continue
		}
		shards = append(shards, shard)
		_, end := ShardRange(shard)
		ok = end != nil && it.SeekGE(end)
	}
	return shards, it.Error()
}

// Find returns a view of a workspace, in whichever shard it has rows; false if it has none.
func (w *Walk) Find(workspace ID) (*View, bool, error) {
	shards, err := w.Shards()
	if err != nil {
		return nil, false, err
	}
	for _, shard := range shards {
		start, end := WorkspaceRange(shard, workspace)
		it, err := w.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
		if err != nil {
			return nil, false, fmt.Errorf("open an iterator: %w", err)
		}
		found := it.First()
		if err := it.Close(); err != nil {
			return nil, false, fmt.Errorf("find a workspace: %w", err)
		}
		if found {
			v := NewView(w.db, shard, workspace)
			return &v, true, nil
		}
	}
	return nil, false, nil
}

// Workspaces calls fn for every workspace that has rows, by shard and then in
// the order of their ids, until it returns false. The directory is none.
func (w *Walk) Workspaces(fn func(v *View) (bool, error)) error {
	shards, err := w.Shards()
	if err != nil {
		return err
	}
	more := true
	for _, shard := range shards {
		err := w.WorkspacesFrom(shard, SystemID, func(v *View) (bool, error) {
			more, err = fn(v)
			return more, err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// WorkspacesFrom calls fn for every workspace of a shard that has rows, from an id on, in the
// order of their ids, until it returns false.
func (w *Walk) WorkspacesFrom(shard Shard, from ID, fn func(v *View) (bool, error)) error {
	return w.each(shard, from, func(v *View) (bool, error) {
		if v.Workspace().IsService() {
			return true, nil
		}
		return fn(v)
	})
}

// each calls fn for every range of a shard from an id on, but not for the shard's own.
func (w *Walk) each(shard Shard, from ID, fn func(v *View) (bool, error)) error {
	start, _ := WorkspaceRange(shard, from)
	_, end := ShardRange(shard)
	it, err := w.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return fmt.Errorf("open an iterator: %w", err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; {
		_, workspace, _, _, err := SplitKey(it.Key())
		if err != nil {
			ok = it.Next()
			continue
		}
		if workspace != SystemID {
			v := NewView(w.db, shard, workspace)
			if more, err := fn(&v); err != nil || !more {
				return err
			}
		}
		_, behind := WorkspaceRange(shard, workspace)
		ok = behind != nil && it.SeekGE(behind)
	}
	return it.Error()
}
