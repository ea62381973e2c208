package cluster

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/membership"
	"switchyard/storage"
)

// formats keeps the format in which this node writes (storage.Format). A new format comes into use
// in three steps, which the registry records:
//
//  1. Every node's program knows the format (Record.Newest).
//  2. Every node has written to its data directory that older programs must not open it any more
//     (Record.Format).
//  3. The directory's owner raises the format of the cluster (ListHead.Format), and the nodes write
//     in it as they hear of that.
//
// Before the second step a node can go back to the version before. A node that is down and not
// removed holds a new format back: its data directory has promised nothing.
type formats struct {
	newest storage.Format // newest one that this node agrees to
	store  *storage.Store
	row    *identityRow
	logger *slog.Logger
	writes atomic.Int64
}

// newFormats starts with the format that the data directory names.
func newFormats(newest storage.Format, store *storage.Store, row *identityRow, logger *slog.Logger) (*formats, error) {
	f := &formats{newest: newest, store: store, row: row, logger: logger}
	writes := row.get().writes()
	f.writes.Store(int64(writes))
	return f, store.Raise(writes) // the last start may have ended before it was raised
}

// current returns the format in which this node writes.
func (f *formats) current() storage.Format { return storage.Format(f.writes.Load()) }

// alone raises the format of a node that is a cluster by itself, and has no registry.
func (f *formats) alone() error { return f.raise(f.newest, f.newest) }

// adopt follows the registry. It returns when the data directory names what it has promised.
func (f *formats) adopt(list *membership.List) error {
	if list.Format > f.newest {
		return fmt.Errorf("cluster: the cluster writes format %d, and this node knows formats up to %d", list.Format, f.newest)
	}
	return f.raise(min(list.Common(), f.newest), list.Format)
}

func (f *formats) raise(promised, writes storage.Format) error {
	id, err := f.row.change(func(id identity, db *pebble.DB) (identity, error) {
		was := id
		id.Writes = max(id.writes(), writes)
		id.Promised = max(id.promised(), promised, id.Writes)
		if id.promised() == was.promised() && id.writes() == was.writes() {
			return was, nil
		}
		err := id.write(db)
		return id, err
	})
	if err != nil {
		return fmt.Errorf("raise the format: %w", err)
	}
	if id.writes() == f.current() {
		return nil
	}
	if err := f.store.Raise(id.writes()); err != nil {
		return err
	}
	was := f.writes.Swap(int64(id.writes()))
	log := f.logger.Info
	if !id.Founded { // a new cluster has no older data
		log = f.logger.Debug
	}
	log("the cluster writes a new format: versions of the program that don't know it can't open this node's data any more",
		"format", int(id.writes()), "before", was)
	return nil
}

// Format returns the format in which this node writes.
func (n *Node) Format() storage.Format { return n.formats.current() }
