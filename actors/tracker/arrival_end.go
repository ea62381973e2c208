package tracker

import (
	"fmt"

	"switchyard/storage"
)

// EndArrivalIn names the arrival.
type EndArrivalIn struct {
	ID string `path:"id" rules:"min=1,max=64"`
}

// EndArrival lets a workspace of which all rows have come begin: the directory reserves its slug, its
// own row and what lies outside of its range is written, and the directory activates it. A repeat
// goes on after a failure, and changes nothing afterwards.
var EndArrival = NewWorkflow[EndArrivalIn, ArrivalAnswer]("EndArrival", "Let a workspace that has moved here begin", Needs{Level: Operator}, func(f Flow, in *EndArrivalIn) (Reply, error) {
	req := f.Request()
	permit, err := permitOperator(f)
	if err != nil {
		return Reply{}, err
	}
	look, err := ask[arrivedLook](f, req.Workspace, arrivedLookOp, in)
	if err != nil {
		return Reply{}, err
	}
	step := directoryStep{WorkspaceID(req.Workspace.String())}
	if look.State != ArrivalDone {
		if err := endArrival(f, permit, in, look); err != nil {
			return Reply{}, err
		}
	}
	if _, err := f.Command(permit, storage.DirectoryID, activateSlugOp, &step); err != nil {
		return Reply{}, err
	}
	_ = syncMembers(f, permit, req.Workspace) // else its timer does it
	return f.Query(req.Workspace, arrivedOp, in)
}, WithoutKey, Refuses(CodeConflict), Audits(auditWorkspace))

// endArrival has the directory reserve the slug of a workspace that arrives, and the workspace begin.
func endArrival(f Flow, permit Permit, in *EndArrivalIn, look arrivedLook) error {
	req := f.Request()
	step := directoryStep{WorkspaceID(req.Workspace.String())}
	held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
	switch {
	case err != nil:
		return err
	case held.Founded:
		// Another request may have ended the arrival since the first look: then this one is its repeat.
		again, err := ask[arrivedLook](f, req.Workspace, arrivedLookOp, in)
		if err != nil || again.State == ArrivalDone {
			return err
		}
		return errWorkspaceThere()
	case held.Exists:
		// An earlier try reserved the slug. Its timer releases it.
		return errBeingMade()
	}
	reserve := reserveSlugIn{Workspace: step.Workspace, Slug: look.Slug, Owner: look.Owner}
	entry, err := reserveSlug(f, permit, &reserve)
	if err != nil {
		return err
	}
	arrive := arriveIn{EndArrivalIn: *in, Reserved: entry.CreatedAt}
	if _, err := f.CommandAs(permit, asOwner(req.Caller), req.Workspace, arriveOp, &arrive); err != nil {
		if notApplied(err) {
			_, _ = f.Command(permit, storage.DirectoryID, releaseSlugOp, &releaseSlugIn{step, &entry.CreatedAt}) // else the timer does it
		}
		return err
	}
	return nil
}

// arrivedLook is what the directory has to know of a workspace that arrives.
type arrivedLook struct {
	State ArrivalState `json:"state"`
	Slug  string       `json:"slug"`
	Owner UserID       `json:"owner"`
}

var arrivedLookOp = NewQuery[EndArrivalIn, arrivedLook]("LookAtArrival", "Look at a workspace that arrives", Needs{}, func(v *View, in *EndArrivalIn) (Reply, error) {
	record, err := v.arrivalByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if record.State == ArrivalDone {
		return jsonReply(Done, arrivedLook{State: record.State})
	}
	ws, err := record.workspace()
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, arrivedLook{record.State, ws.Slug, ws.OwnerID})
})

var arrivedOp = NewQuery[EndArrivalIn, ArrivalAnswer]("ReadArrival", "Read an arrival", Needs{}, func(v *View, in *EndArrivalIn) (Reply, error) {
	record, err := v.arrivalByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, ArrivalAnswer{record.Arrival})
})

func (v *View) arrivalByID(id string) (*arrivalRecord, error) {
	row, err := arrivals.Get(v, nil)
	if err != nil {
		return nil, fmt.Errorf("read the arrival: %w", err)
	}
	if row == nil || row.Value.ID != id {
		return nil, NotFound("arrival")
	}
	return &row.Value, nil
}

// workspace returns the workspace whose rows have come.
func (r *arrivalRecord) workspace() (*Workspace, error) {
	if r.Workspace == nil {
		return nil, Conflict("The workspace's own row has not come.", "Send all rows first.")
	}
	rec, err := storage.ParseRecord(r.Workspace)
	if err != nil {
		return nil, fmt.Errorf("read a workspace that arrives: %w", err)
	}
	row, err := workspaces.Decode(rec)
	if err != nil {
		return nil, fmt.Errorf("read a workspace that arrives: %w", err)
	}
	if row.Value.ID != r.OrganizationID || !isSlug(row.Value.Slug) || row.Value.OwnerID == "" {
		return nil, Conflict("The rows are of another workspace.", "Begin again.")
	}
	return &row.Value, nil
}

// arriveIn is the arrival, and the time when the slug was reserved.
type arriveIn struct {
	EndArrivalIn
	Reserved Timestamp `json:"reserved"`
}

const (
	// maxArrivingTimers bounds the timers of a workspace that arrives: their entries outside of its
	// range are written in one batch.
	maxArrivingTimers = 100_000
	// maxArrivalWrites bounds what the last step writes.
	maxArrivalWrites = 24 << 20
)

// arriveOp is the last step in the workspace's own shard. From its commit on the workspace exists.
var arriveOp = NewCommand[arriveIn, None]("Arrive", "Let a workspace begin", Needs{}, func(tx *Tx, in *arriveIn) (Reply, error) {
	row, err := tx.arrival(in.ID)
	if err != nil {
		return Reply{}, err
	}
	// The rows have brought an id clock of another cluster, so the command's own time may be ahead.
	if tx.wall.Sub(in.Reserved.Time()) > foundWithin {
		return Reply{}, NotApplied("The workspace could not be made in time.")
	}
	record := row.Value
	if _, err := record.workspace(); err != nil {
		return Reply{}, err
	}
	tx.buffer.forget()
	if err := tx.Writer().TakeRow(&storage.RowChange{Op: storage.RowSet, Key: []byte{byte(workspaceTable)}, Value: record.Workspace}); err != nil {
		return Reply{}, fmt.Errorf("take in a workspace: %w", err)
	}
	if err := tx.addShardWide(); err != nil {
		return Reply{}, err
	}
	if err := tx.beginCount(); err != nil {
		return Reply{}, err
	}
	if err := tx.noteMembers(); err != nil {
		return Reply{}, err
	}
	if err := tx.ClearTimer(timerArrival, ""); err != nil {
		return Reply{}, err
	}
	record.State, record.UpdatedAt, record.Workspace = ArrivalDone, At(tx.now), nil
	if _, err := arrivals.Update(tx, row, &record); err != nil {
		return Reply{}, fmt.Errorf("note an arrival: %w", err)
	}
	tx.audit(auditWorkspace, actArrived, tx.Workspace().String(), nil)
	tx.Writer().MarkDirty(DirtyAccess | DirtyTimers | DirtyWebhooks | DirtyOutbox | DirtySets | DirtyReadOnly)
	return Reply{Outcome: NoContent}, nil
}, RunsWithoutWorkspace, WritesUpTo(maxArrivalWrites), Audits(auditWorkspace))

// addShardWide writes the entries of timers and webhooks outside of the workspace's range.
func (tx *Tx) addShardWide() error {
	if err := addShardWide(tx, &timers, maxArrivingTimers); err != nil {
		return err
	}
	return addShardWide(tx, &webhooks, maxArrivingTimers)
}

// addShardWide writes the shard-wide entries of all records of a table.
func addShardWide[T any](tx *Tx, table *storage.Table[T], most int) error {
	var rows []*T
	err := table.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := table.Decode(rec)
		if err != nil {
			return false, err
		}
		if len(rows) == most {
			return false, Conflict(fmt.Sprintf("The workspace has more than %d rows in the table %s.", most, table.Name), "Cancel sessions that wait, or move it when fewer of them do.")
		}
		rows = append(rows, &row.Value)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("take in %s rows: %w", table.Name, err)
	}
	for _, row := range rows {
		if err := table.AddShardWide(tx, row); err != nil {
			return fmt.Errorf("take in %s rows: %w", table.Name, err)
		}
	}
	return nil
}

// noteMembers has the directory learn of all members.
func (tx *Tx) noteMembers() error {
	var users []UserID
	err := members.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := members.Decode(rec)
		if err == nil {
			users = append(users, row.Value.UserID)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	for _, user := range users {
		if err := tx.noteMember(user, true); err != nil {
			return err
		}
	}
	return nil
}
