package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// membership records that a user is, or recently was, a member of a workspace.
type membership struct {
	User      UserID      `json:"user"`
	Workspace WorkspaceID `json:"workspace"`
	// Version is the workspace's counter of member changes. A step with an older
	// version changes nothing; removed memberships are kept for a while so that it is
	// known.
	Version   uint64     `json:"version"`
	RemovedAt *Timestamp `json:"removedAt,omitempty"`
}

// firstOwnerVersion is the version of the owner's membership.
const firstOwnerVersion = 1

// removedLife is how long a removed membership is kept: longer than any step can take.
const removedLife = time.Hour

var memberships = storage.Table[membership]{
	ID:   membershipTable,
	Name: "membership",
	Key:  func(k storage.Key, m *membership) storage.Key { return membershipKey(k, m.User, m.Workspace) },
	Indexes: []storage.Index[membership]{
		{ID: membershipByWorkspace, Name: "workspace", Entries: func(e *storage.Entries, m *membership) {
			e.Add(workspaceKey(e.Key(), m.Workspace))
		}},
		{ID: membershipByRemoval, Name: "removal", Entries: func(e *storage.Entries, m *membership) {
			if m.RemovedAt != nil {
				e.Add(e.Key().U64(uint64(m.RemovedAt.Time().UnixMilli())))
			}
		}},
	},
}

var _ = declareTable(&memberships)

func membershipKey(k storage.Key, user UserID, workspace WorkspaceID) storage.Key {
	return workspaceKey(memberKey(k, user), workspace)
}

// putMembership writes a change of a membership, unless a later change was written
// first.
func (tx *Tx) putMembership(workspace WorkspaceID, c memberChanged) error {
	m := membership{User: c.User, Workspace: workspace, Version: c.Version}
	if !c.Present {
		now := At(tx.now)
		m.RemovedAt = &now
	}
	old, err := memberships.Get(tx, membershipKey(nil, c.User, workspace))
	if err != nil {
		return fmt.Errorf("read a membership: %w", err)
	}
	switch {
	case old == nil:
		_, err = memberships.Insert(tx, &m)
	case old.Value.Version < c.Version:
		_, err = memberships.Update(tx, old, &m)
	}
	if err != nil {
		return fmt.Errorf("write a membership: %w", err)
	}
	if m.RemovedAt != nil {
		return tx.setSweep(sweepMemberships, tx.now.Add(removedLife))
	}
	return nil
}

// putMembershipsIn is the changes of members in a workspace.
type putMembershipsIn struct {
	directoryStep
	Changes []memberChanged `json:"changes"`
}

var putMembershipsOp = NewCommand[putMembershipsIn, None]("PutMemberships", "Tell the directory who is a member", Needs{}, func(tx *Tx, in *putMembershipsIn) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	// A late step must not bring back memberships of a workspace that is being deleted.
	if row == nil || row.Value.State == slugDeleting {
		return Reply{Outcome: NoContent}, nil
	}
	for _, c := range in.Changes {
		if err := tx.putMembership(in.Workspace, c); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}, InDirectory)

// dropMemberships removes up to limit memberships of a workspace and reports whether
// there are more.
func (tx *Tx) dropMemberships(workspace WorkspaceID, limit int) (more bool, err error) {
	prefix := workspaceKey(nil, workspace)
	return tx.dropIndexed(membershipByWorkspace, prefix, len(prefix), limit, nil)
}

// dropIndexed removes memberships by the entries of an index that begin with prefix,
// until expired returns false (nil: none does). skip is the offset of the primary key
// in an entry.
func (tx *Tx) dropIndexed(index storage.TableID, prefix []byte, skip, limit int, expired func(fields []byte) bool) (more bool, err error) {
	var keys [][]byte
	err = tx.Rows(index, prefix, nil, func(fields, _ []byte) (bool, error) {
		if expired != nil && !expired(fields) {
			return false, nil
		}
		if more = len(keys) == limit; more {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), fields[skip:]...))
		return true, nil
	})
	if err != nil {
		return false, fmt.Errorf("read memberships: %w", err)
	}
	for _, pk := range keys {
		row, err := memberships.Get(tx, pk)
		if err != nil {
			return false, fmt.Errorf("read a membership: %w", err)
		}
		if row == nil {
			return false, fmt.Errorf("%w: an index entry names a membership that is not there", storage.ErrFormat)
		}
		if err := memberships.Delete(tx, row); err != nil {
			return false, fmt.Errorf("remove a membership: %w", err)
		}
	}
	return more, nil
}

var sweepMembershipsOp = NewCommand[TimerIn, None]("SweepMemberships", "Forget memberships that ended", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	var next time.Time
	more, err := tx.dropIndexed(membershipByRemoval, nil, 8, sweepBatch, func(fields []byte) bool {
		dies := time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).Add(removedLife)
		if dies.After(tx.now) {
			next = dies
			return false
		}
		return true
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.endSweep(sweepMemberships, more, next)
}, InDirectory, WithSpaceEffect(FreesSpace))
