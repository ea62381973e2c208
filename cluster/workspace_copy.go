package cluster

import (
	"errors"
	"fmt"
	"time"

	"switchyard/storage"
)

// WorkspaceCopy is the rows of a workspace at one index of its shard's log, for another cluster. It
// is used by one goroutine, and must be closed.
type WorkspaceCopy struct {
	*storage.RowCopy
	Index uint64 // the last entry in the rows
}

// copyHold is how long the log is kept after a copy, so that the next one finds what has changed.
const copyHold = 2 * time.Minute

// CopyWorkspace copies the rows of a workspace after BeginImage: all of them, or, with after, those
// that have changed since the copy with that index. The error is ErrLogTruncated if the log does
// not reach back to it, or storage.ErrTooManyChanges; then all rows have to be copied.
func (n *Node) CopyWorkspace(shard storage.Shard, workspace storage.ID, epoch, after uint64, skip func(storage.TableID) bool) (*WorkspaceCopy, error) {
	n.HoldLog(shard, copyHold)
	snapshot := n.cfg.Store.State().NewSnapshot()
	fail := func(err error) (*WorkspaceCopy, error) {
		return nil, fmt.Errorf("copy workspace %s: %w", workspace, errors.Join(err, snapshot.Close()))
	}
	at, err := readPosition(snapshot, shard)
	switch {
	case err != nil:
		return fail(err)
	case at.epoch != epoch || at.applied == 0: // as in Image
		return fail(errNotOwner)
	}
	var changes *storage.RowChanges
	if after > 0 {
		changes = storage.NewRowChanges(shard, workspace)
		last, err := n.ReadLog(shard, after, func(e *LogEntry) (bool, error) {
			batch, err := e.Batch()
			if err != nil || batch == nil {
				return e.Index < at.applied, err
			}
			return e.Index < at.applied, changes.Add(batch)
		})
		if err == nil && last < at.applied {
			err = ErrLogTruncated
		}
		if err != nil {
			return fail(err)
		}
	}
	return &WorkspaceCopy{RowCopy: storage.NewRowCopy(snapshot, shard, workspace, skip, changes), Index: at.applied}, nil
}
