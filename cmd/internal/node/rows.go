package node

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

// rowsBlock is the number of bytes from which a block takes no more rows.
const rowsBlock = 512 << 10

// rowsHeader is the length of a block's own length and sum.
const rowsHeader = 4 + 8

// workspaceRows is the answer to a request for the rows of a workspace, which moves to another
// cluster.
type workspaceRows struct {
	node  *Node
	head  []byte
	copy  *cluster.WorkspaceCopy
	block []byte
	ended bool
}

// beginRows begins to copy a workspace of a shard that this node owns. Writes that are acknowledged
// by now are in the copy.
func (n *Node) beginRows(req *tracker.Request, op *tracker.Op, in *httpapi.WorkspaceRowsIn) (_ tracker.Lines, err error) {
	if err := req.Admitted(op); err != nil {
		return nil, err
	}
	if !n.moves.begin() {
		return nil, tracker.NotApplied("The node is sending the rows of another workspace.")
	}
	defer func() {
		if err != nil {
			<-n.moves.slot
		}
	}()
	shard, after := storage.ShardOf(req.Workspace, n.groups.Shards()), uint64(max(0, in.After.Value))
	epoch, err := n.groups.BeginImage(shard, req.Deadline)
	if err != nil {
		if _, here, _ := n.groups.ShardOwner(shard); !here {
			return nil, tracker.Moved("This node does not serve the shard.")
		}
		return nil, tracker.NotApplied("The shard can't be read now: " + err.Error() + ".")
	}
	if after == 0 && !req.HeadOnly {
		if err := n.recordCopy(req, "workspace", req.Workspace.String()); err != nil {
			return nil, err
		}
	}
	copied, err := n.groups.CopyWorkspace(shard, req.Workspace, epoch, after, tracker.StaysBehind)
	switch {
	case errors.Is(err, cluster.ErrLogTruncated), errors.Is(err, storage.ErrTooManyChanges):
		return nil, tracker.Conflict(fmt.Sprintf("The log does not tell any more what has changed since index %d.", after), "Copy all rows again, without after.")
	case err != nil:
		return nil, fmt.Errorf("copy the rows of a workspace: %w", err)
	}
	there, err := copied.Has(tracker.WorkspaceRow)
	if err == nil && !there {
		err = op.NoWorkspace()
	}
	r := &workspaceRows{node: n, copy: copied}
	if err == nil {
		r.head, err = json.Marshal(&httpapi.RowsHead{
			Version: httpapi.RowsVersion, Format: int(n.groups.Format()), ClusterID: n.groups.ClusterID(),
			Workspace: req.Workspace.String(), Index: copied.Index, After: after,
		})
	}
	if err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	r.head = append(r.head, '\n')
	return r, nil
}

// Next implements tracker.Lines.
func (r *workspaceRows) Next() ([]byte, error) {
	if head := r.head; head != nil {
		r.head = nil
		return head, nil
	}
	if r.ended {
		return nil, io.EOF
	}
	if err := r.node.moves.ctx.Err(); err != nil {
		return nil, fmt.Errorf("send the rows of a workspace: %w", err)
	}
	block, err := r.copy.Next(append(r.block[:0], make([]byte, rowsHeader)...), rowsBlock)
	if errors.Is(err, io.EOF) {
		r.ended, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(block, uint32(len(block)-rowsHeader))
	binary.BigEndian.PutUint64(block[4:], xxhash.Sum64(block[rowsHeader:]))
	r.block = block
	return block, nil
}

// Close implements tracker.Lines.
func (r *workspaceRows) Close() {
	if err := r.copy.Close(); err != nil {
		r.node.cfg.Logger.Error("close the copy of a workspace", "error", err)
	}
	<-r.node.moves.slot
}

// recordCopy adds the copy of a shard or a workspace to the cluster's audit (Decision 69), before
// any of it is sent.
func (n *Node) recordCopy(req *tracker.Request, kind, target string) error {
	act := *req
	act.Workspace, act.Idempotency = storage.ID{}, nil
	err := act.Admit(tracker.RecordAct, tracker.RecordAct.Needs)
	if err == nil {
		_, err = n.engine.Do(&act, tracker.RecordAct, &tracker.Act{Kind: kind, Act: "copied", Target: target})
	}
	if err != nil {
		n.cfg.Logger.Warn("the audit of a copy can't be written", "kind", kind, "target", target, "error", err)
		return tracker.NotApplied("The copy can't be added to the audit now.")
	}
	return nil
}
