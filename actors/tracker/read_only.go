package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// ReadOnly is the read-only mode of a workspace or of the whole service (Decision 71).
type ReadOnly struct {
	Reason    string    `json:"reason"`
	CreatedAt Timestamp `json:"createdAt"`
}

// ReadOnlyOut is the answer about a read-only mode; null: there is none.
type ReadOnlyOut struct {
	ReadOnly *ReadOnly `json:"readOnly"`
}

// ReadOnlyIn turns a read-only mode on.
type ReadOnlyIn struct {
	Reason string `json:"reason" rules:"required,min=1,max=500"`
}

// readOnlyState is the stored form of a read-only mode; without a reason there is none. The
// mode of the service is kept in the directory, and copied to each shard: Version orders
// the copies.
type readOnlyState struct {
	ReadOnly
	Version uint64 `json:"version,omitempty"`
}

// readOnlyRows has at most one row in each workspace, in the directory, and in
// storage.ServiceID of each shard.
var readOnlyRows = storage.Table[readOnlyState]{
	ID:   readOnlyTable,
	Name: "readOnly",
	Key:  func(k storage.Key, _ *readOnlyState) storage.Key { return k },
	Indexes: []storage.Index[readOnlyState]{{
		ID: readOnlyByShard, Name: "shard", ShardWide: true,
		Entries: func(e *storage.Entries, s *readOnlyState) {
			if s.Reason != "" {
				e.Add(e.Key())
			}
		},
	}},
	Dirty: DirtyReadOnly | DirtyTimers,
}

var _ = declareTable(&readOnlyRows)

// shown returns the answer about a state, which may be nil.
func (s *readOnlyState) shown() ReadOnlyOut {
	if s == nil || s.Reason == "" {
		return ReadOnlyOut{}
	}
	mode := s.ReadOnly
	return ReadOnlyOut{&mode}
}

// ReadOnlySet has the read-only modes that hold in a shard.
type ReadOnlySet struct {
	service    *ReadOnly
	workspaces map[storage.ID]*ReadOnly
}

// ListReadOnly returns the read-only modes of a shard. v reads the shard's own range.
func ListReadOnly(v *storage.View, of func(workspace storage.ID) storage.View) (*ReadOnlySet, error) {
	set := &ReadOnlySet{}
	err := v.Rows(readOnlyByShard, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != len(storage.ID{}) {
			return false, fmt.Errorf("%w: read-only entry of %d bytes", storage.ErrFormat, len(fields))
		}
		id := storage.ID(fields)
		w := of(id)
		row, err := readOnlyRows.Get(&w, nil)
		if err != nil || row == nil {
			return err == nil, err
		}
		if id.IsService() {
			set.service = &row.Value.ReadOnly
			return true, nil
		}
		if set.workspaces == nil {
			set.workspaces = map[storage.ID]*ReadOnly{}
		}
		set.workspaces[id] = &row.Value.ReadOnly
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list read-only workspaces: %w", err)
	}
	return set, nil
}

// Service reports whether the whole service is read-only.
func (s *ReadOnlySet) Service() bool { return s.service != nil }

// Forbids reports whether changes of a workspace are refused.
func (s *ReadOnlySet) Forbids(workspace storage.ID) bool {
	return s.service != nil || s.workspaces[workspace] != nil
}

// Refusal returns the error for a change of a workspace, or nil.
func (s *ReadOnlySet) Refusal(workspace storage.ID) *Error {
	if s.service != nil {
		return errReadOnly(serviceReadOnly, s.service.Reason)
	}
	if mode := s.workspaces[workspace]; mode != nil {
		return errReadOnly(workspaceReadOnly, mode.Reason)
	}
	return nil
}

// readOnlyRetry is the time after which a refused change may be tried again.
const readOnlyRetry = 10 * time.Second

// The values of Error.ReadOnly.
const (
	serviceReadOnly   = "service"
	workspaceReadOnly = "workspace"
)

func errReadOnly(what, reason string) *Error {
	err := NotApplied(fmt.Sprintf("The %s is read-only: %s", what, reason))
	err.Hint = "Nothing was changed. Reads are answered. Send the change again when the operator has ended the read-only mode."
	err.RetryAfter, err.ReadOnly = readOnlyRetry, what
	return err
}

// Forbid sets the error for changes of a workspace in read-only mode; nil allows them.
func (l *WriteBuffer) Forbid(refusal *Error) { l.forbidden = refusal }

// mayChange returns an error for a command in read-only mode, unless it is the operator's or
// exempt (see Permit). A timer's command is refused here although the scheduler starts no timer
// in read-only mode: the mode may have begun after the start.
func (l *WriteBuffer) mayChange(req *Request) error {
	if l.forbidden == nil || req.Caller.Root || req.permit.exempt || req.permit.elsewhere && l.forbidden.ReadOnly == workspaceReadOnly {
		return nil
	}
	refusal := *l.forbidden
	return &refusal
}

// isWritableOp fails if the workspace is read-only. Workflows that change only the
// directory for their workspace ask for it.
var isWritableOp = NewQuery[None, None]("IsWritable", "Check that a workspace is not read-only", Needs{}, func(v *View, _ *None) (Reply, error) {
	return Reply{Outcome: NoContent}, v.isWritable()
})

func (v *View) isWritable() error {
	row, err := readOnlyRows.Get(v, nil)
	if err != nil {
		return fmt.Errorf("read the read-only mode: %w", err)
	}
	if row != nil && row.Value.Reason != "" {
		return errReadOnly(workspaceReadOnly, row.Value.Reason)
	}
	return nil
}

// requireWritable returns an error if the workspace of a request is read-only and the caller
// is not the operator. A repeat of a request that the directory has answered gets that
// answer instead.
func requireWritable(f Flow) (kept *Reply, err error) {
	req := f.Request()
	if req.Caller.Root {
		return nil, nil
	}
	_, refused := f.Query(req.Workspace, isWritableOp, &None{})
	if refused == nil {
		return nil, nil
	}
	if kept, err = keptReply(f); err == nil && kept == nil {
		err = refused
	}
	return kept, err
}
