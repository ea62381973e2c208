package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// memberChanged is a change of a member that the directory must learn of. Only the
// last change of a user counts.
type memberChanged struct {
	User    UserID `json:"user"`
	Present bool   `json:"present"`
	Version uint64 `json:"version"`
}

// timerSyncMembers is set while the directory must learn of changes.
const timerSyncMembers = "members.sync"

const (
	// syncAfter is the time after which the timer passes on a change.
	syncAfter = 5 * time.Second
	// syncBatch limits the changes that are passed on at once.
	syncBatch = 200
)

// noteMember records a change for the directory, in the change's own batch, as a plain
// row: user -> version (8 bytes) and whether the user is a member (1).
func (tx *Tx) noteMember(user UserID, present bool) error {
	version, err := tx.Next(memberChange, storage.ID{})
	if err != nil {
		return err
	}
	value := binary.BigEndian.AppendUint64(nil, version)
	if present {
		value = append(value, 1)
	} else {
		value = append(value, 0)
	}
	if err := tx.Writer().SetValue(pendingTable, memberKey(nil, user), value); err != nil {
		return err
	}
	return tx.SetTimer(timerSyncMembers, "", tx.now.Add(syncAfter))
}

func parsePending(fields, value []byte) (c memberChanged, err error) {
	// Users whom an admin has added have any id, so the key may have escaped it.
	user, rest, ok := storage.CutStr(fields)
	if len(value) != 9 || !ok || user == "" || len(rest) > 0 {
		return c, fmt.Errorf("%w: pending change of %d bytes", storage.ErrFormat, len(value))
	}
	return memberChanged{User: UserID(user), Version: binary.BigEndian.Uint64(value), Present: value[8] == 1}, nil
}

// pendingMembers returns up to limit of the changes that the directory must learn of.
func (v *View) pendingMembers(limit int) ([]memberChanged, error) {
	changes := []memberChanged{}
	err := v.Rows(pendingTable, nil, nil, func(fields, value []byte) (bool, error) {
		c, err := parsePending(fields, value)
		changes = append(changes, c)
		return len(changes) < limit, err
	})
	if err != nil {
		return nil, fmt.Errorf("read pending changes: %w", err)
	}
	return changes, nil
}

// memberChanges is a list of changes, as the answer of one step and the input of
// the next.
type memberChanges struct {
	Changes []memberChanged `json:"changes"`
}

var pendingMembersOp = NewQuery[None, memberChanges]("PendingMembers", "List what the directory has to learn", Needs{}, func(v *View, _ *None) (Reply, error) {
	changes, err := v.pendingMembers(syncBatch)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, memberChanges{changes})
}, FromSnapshot)

// clearPendingOp removes the changes that the directory has learned of, except for users
// that changed again meanwhile. Its answer has a change if any is left.
var clearPendingOp = NewCommand[memberChanges, memberChanges]("ClearPending", "Strike off what the directory has learned", Needs{}, func(tx *Tx, in *memberChanges) (Reply, error) {
	for _, c := range in.Changes {
		key := memberKey(nil, c.User)
		value, err := tx.Value(pendingTable, key, nil)
		if err != nil {
			return Reply{}, fmt.Errorf("read a pending change: %w", err)
		}
		if value == nil || binary.BigEndian.Uint64(value) != c.Version {
			continue
		}
		if err := tx.Writer().DeleteValue(pendingTable, key); err != nil {
			return Reply{}, err
		}
	}
	left, err := tx.pendingMembers(1)
	if err != nil {
		return Reply{}, err
	}
	if len(left) == 0 {
		err = tx.ClearTimer(timerSyncMembers, "")
	} else {
		err = tx.SetTimerAtOnce(timerSyncMembers, "")
	}
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, memberChanges{left})
})

// syncMembers passes the changes of members in a workspace on to the directory.
func syncMembers(f Flow, permit Permit, workspace storage.ID) error {
	pending, err := ask[memberChanges](f, workspace, pendingMembersOp, &None{})
	if err != nil {
		return err
	}
	if len(pending.Changes) > 0 {
		in := putMembershipsIn{directoryStep: directoryStep{WorkspaceID(workspace.String())}, Changes: pending.Changes}
		if _, err := f.Command(permit, storage.DirectoryID, putMembershipsOp, &in); err != nil {
			return err
		}
	}
	_, err = f.Command(permit, workspace, clearPendingOp, &pending)
	return err
}

var syncMembersOp = NewWorkflow[TimerIn, None]("SyncMembers", "Tell the directory who is a member", Needs{}, func(f Flow, _ *TimerIn) (Reply, error) {
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, syncMembers(f, permit, f.Request().Workspace)
})

// memberFlow runs a command that changes a member, and passes the change on to the
// directory.
func memberFlow(f Flow, op *Op, in any) (Reply, error) {
	req := f.Request()
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	reply, err := f.CommandAs(permit, req.Caller, req.Workspace, op, in)
	if err != nil {
		return Reply{}, err
	}
	// The change is committed. If passing it on fails, the timer in the same batch does
	// it and reports the error.
	_ = syncMembers(f, permit, req.Workspace)
	return reply, nil
}
