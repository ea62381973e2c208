package httpapi

import "switchyard/actors/tracker"

// RowsMedia is the content type of a workspace's rows: a line of JSON, a RowsHead, and then blocks of
// rows. A block is its length (4 bytes, big endian), the xxHash64 of its rows (8) and the rows, as
// storage.ReadRows reads them. The last block has the length 0.
const RowsMedia = tracker.RowsMedia

// WorkspaceRowsIn asks for the rows of a workspace.
type WorkspaceRowsIn struct {
	// After is the index of an earlier copy. The answer has what has changed since then.
	After tracker.Opt[int64] `query:"after" rules:"min=1"`
}

// RowsHead is the line in front of the rows of a workspace.
type RowsHead struct {
	Version   int    `json:"version"`
	Format    int    `json:"format"` // of the cluster
	ClusterID string `json:"clusterId"`
	Workspace string `json:"workspace"`
	Index     uint64 `json:"index"` // of the last entry of the shard's log in the rows
	// After is the index of the request; 0: these are all rows.
	After uint64 `json:"after,omitempty"`
}

// RowsVersion is the version of the form of rows.
const RowsVersion = 1

// opWorkspaceRows sends the rows of a workspace. The node that owns the workspace's shard reads them.
var opWorkspaceRows = tracker.NewQuery[WorkspaceRowsIn, tracker.None]("WorkspaceRows", "Copy the rows of a workspace for another cluster", tracker.Needs{Level: tracker.Operator}, func(*tracker.View, *WorkspaceRowsIn) (tracker.Reply, error) {
	return tracker.Reply{}, nil
}, tracker.Audits("workspace"), tracker.AnswersFile(RowsMedia), tracker.AnswersLines, tracker.Answers(tracker.Done), tracker.Refuses(tracker.CodeConflict))

// readsLog reports whether an operation reads the log or the files of a shard, which only a node of
// a cluster has.
func readsLog(op *tracker.Op) bool { return op == opBackupShard || op == opWorkspaceRows }
