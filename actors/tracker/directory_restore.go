package tracker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/storage"
)

// A backup has each shard at a moment of its own, and the directory at the last of them. So
// after a restore the directory may know what a workspace does not know yet: its deletion, its
// creation, changes of its members. Restored is what makes them agree:
//
//   - The directory decides which workspaces there are. A workspace that it does not know was
//     deleted, and is erased; one that was founded after its shard's moment is forgotten, with
//     the answer to the request that created it.
//   - The workspace decides who its members are, as always.
//
// The erasing is left to the timer that completes interrupted deletions.

// RestoreReport says what Restored changed.
type RestoreReport struct {
	Erased      int // workspaces that had been deleted when the directory was copied
	Forgotten   int // workspaces that were created after their shard was copied
	Memberships int // of which the directory had learned too much or too little
	// Kept are the workspaces that the directory had not heard of, after a recovery.
	Kept []string
}

// restoreBatch bounds the memberships that are changed at once.
const restoreBatch = 500

// Restored makes the directory agree with restored shards, on which nothing runs. w reads the
// state, shards is the number of workspace shards, and run runs an operation in the directory
// and commits.
func Restored(w *storage.Walk, shards int, run func(op *Op, in any) error) (RestoreReport, error) {
	return (&restoration{w: w, d: w.Directory(), shards: shards, run: run}).make()
}

// Recovered is Restored for shards that were left of a cluster. There the directory may be the
// older one: a workspace that it does not know may be the newest, so it is kept.
func Recovered(w *storage.Walk, shards int, run func(op *Op, in any) error) (RestoreReport, error) {
	return (&restoration{w: w, d: w.Directory(), shards: shards, run: run, keeps: true}).make()
}

func (r *restoration) make() (RestoreReport, error) {
	for _, step := range []func() error{r.entries, r.unknown, r.readOnly} {
		if err := step(); err != nil {
			return RestoreReport{}, fmt.Errorf("make the directory agree: %w", err)
		}
	}
	return r.report, nil
}

type restoration struct {
	w      *storage.Walk
	d      *storage.View
	shards int
	run    func(op *Op, in any) error
	keeps  bool // workspaces that the directory does not know
	report RestoreReport
}

func (r *restoration) workspace(id storage.ID) *storage.View {
	return r.w.Workspace(storage.ShardOf(id, r.shards), id)
}

// entries goes through the workspaces that the directory knows. Reserved entries, and those
// that are being deleted, have timers.
func (r *restoration) entries() error {
	var active []directoryEntry
	err := directory.Scan(r.d, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := directory.Decode(rec)
		if err == nil && row.Value.State == slugActive {
			active = append(active, row.Value)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	for i := range active {
		e := &active[i]
		v := r.workspace(e.Workspace.raw())
		there, err := v.Has(workspaceTable, nil)
		switch {
		case err != nil:
			return fmt.Errorf("look for a workspace: %w", err)
		case !there:
			r.report.Forgotten++
			err = r.run(endRestoredOp, &endRestoredIn{directoryStep: directoryStep{e.Workspace}})
		default:
			err = r.members(e.Workspace, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// members compares the members of a workspace with those that the directory knows.
func (r *restoration) members(workspace WorkspaceID, v *storage.View) error {
	version, err := v.Number(memberChange, storage.Key(nil).ID(storage.ID{}))
	if err != nil {
		return fmt.Errorf("read a counter: %w", err)
	}
	version = max(version, firstOwnerVersion)
	is := map[UserID]bool{}
	err = members.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := members.Decode(rec)
		if err == nil {
			is[row.Value.UserID] = true
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	var changes []memberChanged
	known := map[UserID]bool{}
	prefix := workspaceKey(nil, workspace)
	err = r.d.Rows(membershipByWorkspace, prefix, nil, func(fields, _ []byte) (bool, error) {
		row, err := memberships.Get(r.d, slices.Clone(fields[len(prefix):]))
		if err != nil || row == nil {
			return false, fmt.Errorf("%w: an index entry names a membership that is not there", storage.ErrFormat)
		}
		m := &row.Value
		known[m.User] = true
		noted, err := v.Has(pendingTable, memberKey(nil, m.User))
		// A version that the workspace has not reached would hide its next change.
		if err == nil && (m.Version > version || !noted && is[m.User] != (m.RemovedAt == nil)) {
			changes = append(changes, memberChanged{User: m.User, Present: is[m.User], Version: version})
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the memberships: %w", err)
	}
	for user := range is {
		if known[user] {
			continue
		}
		noted, err := v.Has(pendingTable, memberKey(nil, user))
		if err != nil {
			return fmt.Errorf("read a pending change: %w", err)
		}
		if !noted {
			changes = append(changes, memberChanged{User: user, Present: true, Version: version})
		}
	}
	slices.SortFunc(changes, func(a, b memberChanged) int { return strings.Compare(string(a.User), string(b.User)) })
	r.report.Memberships += len(changes)
	for some := range slices.Chunk(changes, restoreBatch) {
		if err := r.run(restoreMembershipsOp, &putMembershipsIn{directoryStep: directoryStep{workspace}, Changes: some}); err != nil {
			return err
		}
	}
	return nil
}

// unknown goes through the workspaces that the directory does not know. Rows may be left of one
// that is half erased.
func (r *restoration) unknown() error {
	var unknown []endRestoredIn
	err := r.w.Workspaces(func(v *storage.View) (bool, error) {
		id := WorkspaceID(v.Workspace().String())
		there, err := r.d.Has(directoryTable, workspaceKey(nil, id))
		if err != nil || there {
			return err == nil, err
		}
		in := endRestoredIn{directoryStep: directoryStep{id}}
		ws, err := workspaces.Get(v, nil)
		if err == nil && ws != nil {
			in.Owner = ws.Value.OwnerID
		}
		unknown = append(unknown, in)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the workspaces: %w", err)
	}
	for i := range unknown {
		if kept, err := r.keep(&unknown[i]); err != nil {
			return err
		} else if kept {
			continue
		}
		if err := r.run(endRestoredOp, &unknown[i]); err != nil {
			return err
		}
		r.report.Erased++
	}
	return nil
}

// keep makes the directory know a workspace, and reports whether it does. It doesn't if the
// workspace is half erased, or if its slug belongs to another one by now.
func (r *restoration) keep(in *endRestoredIn) (bool, error) {
	if !r.keeps {
		return false, nil
	}
	v := r.workspace(in.Workspace.raw())
	ws, err := workspaces.Get(v, nil)
	if err != nil || ws == nil {
		return false, err
	}
	holder, err := NewView(*r.d, nil, time.Time{}, nil).entryBySlug(ws.Value.Slug)
	if err != nil || holder != nil && holder.Value.State != slugDeleting {
		return false, err
	}
	if err := r.run(keepRestoredOp, &keepRestoredIn{directoryStep: in.directoryStep, Slug: ws.Value.Slug, Owner: ws.Value.OwnerID, CreatedAt: ws.Value.CreatedAt}); err != nil {
		return false, err
	}
	r.report.Kept = append(r.report.Kept, ws.Value.Slug)
	return true, r.members(in.Workspace, v)
}

// readOnly has the service's read-only mode copied to the shards again, whose copies may be of another
// decision. One that the directory has not heard of has a later version, and would be kept: then the
// directory's decision, which counts, gets a version after it.
func (r *restoration) readOnly() error {
	row, err := readOnlyRows.Get(r.d, nil)
	if err != nil {
		return fmt.Errorf("read the read-only mode: %w", err)
	}
	var decided readOnlyState
	if row != nil {
		decided = row.Value
	}
	in := recopyRestoredIn{}
	for n := range r.shards {
		shard := storage.Shard(n + 1)
		copied, err := readOnlyRows.Get(r.w.Workspace(shard, storage.ServiceID(shard)), nil)
		if err != nil {
			return fmt.Errorf("read a copy of the read-only mode: %w", err)
		}
		if copied != nil && copied.Value != decided && copied.Value.Version >= decided.Version {
			in.Version = max(in.Version, copied.Value.Version+1)
		}
	}
	if row == nil && in.Version == 0 {
		return nil
	}
	return r.run(recopyRestoredOp, &in)
}

// endRestoredIn is a workspace that is not to be there after a restore. Owner is that of a
// workspace which the directory does not know.
type endRestoredIn struct {
	directoryStep
	Owner UserID
}

// endRestoredOp decides the deletion of a workspace, and leaves it to the timer. A workspace
// that the directory does not know gets an entry meanwhile, whose slug is its id: its own may
// belong to another one by now.
var endRestoredOp = NewCommand[endRestoredIn, None]("EndRestored", "Remove a workspace after a restore", Needs{}, func(tx *Tx, in *endRestoredIn) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	switch {
	case err != nil:
	case row == nil:
		_, err = directory.Insert(tx, &directoryEntry{
			Workspace: in.Workspace, Slug: string(in.Workspace), State: slugDeleting, Owner: in.Owner, CreatedAt: At(tx.now),
		})
	default:
		if err = tx.dropAnswer(row.Value.Answer); err == nil {
			err = tx.setEntryState(row, slugDeleting)
		}
	}
	if err != nil {
		return Reply{}, fmt.Errorf("remove a workspace after a restore: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerErase, string(in.Workspace))
}, InDirectory, WithSpaceEffect(EndsWorkspace))

// keepRestoredIn is a workspace that the directory gets to know in a recovery.
type keepRestoredIn struct {
	directoryStep
	Slug      string
	Owner     UserID
	CreatedAt Timestamp
}

var keepRestoredOp = NewCommand[keepRestoredIn, None]("KeepRestored", "Keep a workspace in a recovery", Needs{}, func(tx *Tx, in *keepRestoredIn) (Reply, error) {
	holder, err := tx.entryBySlug(in.Slug)
	if err == nil && holder != nil { // it is being deleted, and needs its slug no longer
		e := holder.Value
		e.Slug = string(e.Workspace)
		_, err = directory.Update(tx, holder, &e)
	}
	if err == nil {
		_, err = directory.Insert(tx, &directoryEntry{Workspace: in.Workspace, Slug: in.Slug, State: slugActive, Owner: in.Owner, CreatedAt: in.CreatedAt})
	}
	if err != nil {
		return Reply{}, fmt.Errorf("keep a workspace in a recovery: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}, InDirectory, WithSpaceEffect(FreesSpace))

// restoreMembershipsOp sets memberships whatever their version.
var restoreMembershipsOp = NewCommand[putMembershipsIn, None]("RestoreMemberships", "Set memberships after a restore", Needs{}, func(tx *Tx, in *putMembershipsIn) (Reply, error) {
	for _, c := range in.Changes {
		old, err := memberships.Get(tx, membershipKey(nil, c.User, in.Workspace))
		if err == nil && old != nil {
			err = memberships.Delete(tx, old)
		}
		if err != nil {
			return Reply{}, fmt.Errorf("set a membership after a restore: %w", err)
		}
		if err := tx.putMembership(in.Workspace, c); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}, InDirectory, WithSpaceEffect(FreesSpace))

// recopyRestoredIn has the version that the decision gets; 0: it keeps its own.
type recopyRestoredIn struct {
	Version uint64
}

// recopyRestoredOp sets the timer that copies the service's read-only mode.
var recopyRestoredOp = NewCommand[recopyRestoredIn, None]("RecopyRestored", "Copy the read-only mode after a restore", Needs{}, func(tx *Tx, in *recopyRestoredIn) (Reply, error) {
	if in.Version != 0 {
		row, err := readOnlyRows.Get(tx, nil)
		if err != nil {
			return Reply{}, fmt.Errorf("copy the read-only mode after a restore: %w", err)
		}
		state := readOnlyState{}
		if row != nil {
			state = row.Value
		}
		state.Version = in.Version
		if _, err := tx.setReadOnly(&state); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerCopyReadOnly, "")
}, InDirectory, WithSpaceEffect(FreesSpace))

// NewRestore returns how Restored runs its operations: in the directory's write buffer, each
// followed by commit.
func NewRestore(buffer *WriteBuffer, now time.Time, commit func() error) func(op *Op, in any) error {
	return func(op *Op, in any) error {
		if _, err := buffer.Run(op, ServiceRequest("restore", storage.DirectoryID), in, now); err != nil {
			return err
		}
		return commit()
	}
}
