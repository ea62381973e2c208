package tracker

import (
	"bytes"
	"fmt"
	"time"

	"switchyard/storage"
)

// A workspace that moves here from another cluster arrives as rows, under its own id. The rows are
// of no workspace until the last step writes the workspace's own row, so that nobody sees them
// before. The program that moves the workspace sends them: all rows, then what has changed meanwhile,
// again and again, until it has stopped the changes there (Decision 94).

// RowsMedia is the content type of rows; see TakeRows.
const RowsMedia = "application/vnd.switchyard.rows"

// ArrivalState is the state of an arrival.
type ArrivalState string

// The states of an arrival.
const (
	ArrivalRunning ArrivalState = "running"
	ArrivalDone    ArrivalState = "done"
)

// EnumValues implements Enumerated.
func (ArrivalState) EnumValues() []string {
	return enumTexts([]ArrivalState{ArrivalRunning, ArrivalDone})
}

// Arrival is the progress of a workspace that moves here. Next is the number of the block of rows
// that comes next.
type Arrival struct {
	ID             string       `json:"id"`
	OrganizationID WorkspaceID  `json:"organizationId"`
	From           string       `json:"from"` // the id of the cluster that it comes from
	State          ArrivalState `json:"state"`
	Next           int64        `json:"next"`
	Bytes          int64        `json:"bytes"`
	CreatedAt      Timestamp    `json:"createdAt"`
	UpdatedAt      Timestamp    `json:"updatedAt"`
}

// ArrivalAnswer is the answer of the operations on an arrival.
type ArrivalAnswer struct {
	Arrival Arrival `json:"arrival"`
}

// arrivalRecord is the stored form of an arrival. It stays when the workspace has arrived, so that
// a repeat is known.
type arrivalRecord struct {
	Arrival
	// Workspace is the stored form of the workspace's own row, which is written last.
	Workspace []byte `json:"workspace"`
}

// arrivals has at most one row, the workspace's arrival.
var arrivals = storage.Table[arrivalRecord]{
	ID:   arrivalTable,
	Name: "arrival",
	Key:  func(k storage.Key, _ *arrivalRecord) storage.Key { return k },
}

var _ = declareTable(&arrivals)

// WorkspaceRow is the id under which a workspace has its own row.
const WorkspaceRow = workspaceTable

// StaysBehind reports whether the rows under an id are not copied to another cluster: they are about
// what the operator of this one does, or are made anew, as the count of bytes is.
func StaysBehind(id storage.TableID) bool {
	return id == readOnlyTable || id == arrivalTable || id == auditUnsent || id == bytesTable
}

// timerArrival ends an arrival whose rows no longer come.
const timerArrival = "workspace.arrival"

// arrivalIdle is how long an arrival waits for rows.
const arrivalIdle = time.Hour

// arrival returns the workspace's arrival, which must not have ended, and must have the id unless
// that is empty. Nothing that the command writes is counted: the rows are counted once the workspace
// has begun.
func (tx *Tx) arrival(id string) (*storage.Row[arrivalRecord], error) {
	tx.countNothing()
	row, err := arrivals.Get(tx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the arrival: %w", err)
	}
	if row == nil || id != "" && row.Value.ID != id {
		return nil, NotFound("arrival")
	}
	if row.Value.State == ArrivalDone {
		return nil, Conflict("The workspace has arrived.", "Read it with GET /workspaces/{id}.")
	}
	return row, nil
}

// ShowArrival shows the progress of an arrival.
var ShowArrival = NewQuery[None, ArrivalAnswer]("ShowArrival", "Show the progress of a workspace that moves here", Needs{Level: Operator}, func(v *View, _ *None) (Reply, error) {
	row, err := arrivals.Get(v, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the arrival: %w", err)
	}
	if row == nil {
		return Reply{}, NotFound("arrival")
	}
	return jsonReply(Done, ArrivalAnswer{row.Value.Arrival})
})

// NewArrivalIn says where a workspace comes from.
type NewArrivalIn struct {
	// From is the id of the other cluster.
	From string `json:"from" rules:"required,min=1,max=255"`
}

// BeginArrival makes room for the rows of a workspace under its id. An earlier arrival that has not
// ended is given up.
var BeginArrival = NewWorkflow[NewArrivalIn, ArrivalAnswer]("BeginArrival", "Begin to take in a workspace from another cluster", Needs{Level: Operator}, func(f Flow, in *NewArrivalIn) (Reply, error) {
	req := f.Request()
	permit, err := permitOperator(f)
	if err != nil {
		return Reply{}, err
	}
	step := directoryStep{WorkspaceID(req.Workspace.String())}
	held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case held.Founded:
		return Reply{}, errWorkspaceThere()
	case held.Exists:
		// A creation or the end of an arrival is under way, or has failed. Then its timer releases the slug.
		return Reply{}, errBeingMade()
	}
	if err := recordArrival(f, permit, actArriving); err != nil {
		return Reply{}, err
	}
	return f.CommandAs(permit, req.Caller, req.Workspace, beginArrivalOp, in)
}, WithoutKey, Answers(Created), Refuses(CodeConflict), Audits(auditWorkspace))

// recordArrival adds to the cluster's audit: as long as a workspace arrives it has none of its own.
func recordArrival(f Flow, permit Permit, act string) error {
	req := f.Request()
	_, err := f.CommandAs(permit, req.Caller, storage.DirectoryID, recordActOp, &Act{Kind: auditWorkspace, Act: act, Target: req.Workspace.String()})
	return err
}

func errWorkspaceThere() *Error {
	return Conflict("There is a workspace with this id.", "If it was moved here before, there is nothing left to do. Otherwise delete it first.")
}

var beginArrivalOp = NewCommand[NewArrivalIn, ArrivalAnswer]("BeginArrivalHere", "Make room for a workspace's rows", Needs{}, func(tx *Tx, in *NewArrivalIn) (Reply, error) {
	tx.countNothing()
	if !plausibleID(tx.Workspace()) {
		return Reply{}, BadRequest(Fault{Path: "workspace", Message: "Not the id of a workspace."})
	}
	there, err := tx.Founded()
	if err != nil {
		return Reply{}, err
	}
	if there {
		return Reply{}, errWorkspaceThere()
	}
	if err := tx.dropArrival(); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	record := &arrivalRecord{Arrival: Arrival{
		ID: id.String(), OrganizationID: WorkspaceID(tx.Workspace().String()), From: in.From,
		State: ArrivalRunning, CreatedAt: now, UpdatedAt: now,
	}}
	if _, err := arrivals.Insert(tx, record); err != nil {
		return Reply{}, fmt.Errorf("begin an arrival: %w", err)
	}
	if err := tx.SetTimer(timerArrival, "", tx.now.Add(arrivalIdle)); err != nil {
		return Reply{}, err
	}
	return jsonReply(Created, ArrivalAnswer{record.Arrival})
}, RunsWithoutWorkspace)

// dropArrival removes the rows that have arrived.
func (tx *Tx) dropArrival() error {
	if err := tx.ClearTimer(timerArrival, ""); err != nil {
		return err
	}
	if err := tx.Writer().DeleteWorkspace(); err != nil {
		return fmt.Errorf("give up an arrival: %w", err)
	}
	tx.buffer.forget()
	return nil
}

// AbandonArrival removes the rows of a workspace that has not arrived.
var AbandonArrival = NewWorkflow[None, None]("AbandonArrival", "Give up the move of a workspace to here", Needs{Level: Operator}, func(f Flow, _ *None) (Reply, error) {
	return abandonArrival(f, "")
}, WithoutKey, WithSpaceEffect(EndsWorkspace), Refuses(CodeConflict), Audits(auditWorkspace))

// AbandonArrivalByIDIn names the arrival.
type AbandonArrivalByIDIn struct {
	ID string `path:"id" rules:"min=1,max=64"`
}

// AbandonArrivalByID is AbandonArrival for one arrival: another one that has taken its place goes on.
var AbandonArrivalByID = NewWorkflow[AbandonArrivalByIDIn, None]("AbandonArrivalByID", "Give up one arrival of a workspace", Needs{Level: Operator}, func(f Flow, in *AbandonArrivalByIDIn) (Reply, error) {
	return abandonArrival(f, in.ID)
}, WithoutKey, WithSpaceEffect(EndsWorkspace), Refuses(CodeConflict), Audits(auditWorkspace))

// abandonArrival gives up the workspace's arrival, which must have the id unless that is empty.
func abandonArrival(f Flow, id string) (Reply, error) {
	req := f.Request()
	permit, err := permitOperator(f)
	if err != nil {
		return Reply{}, err
	}
	reply, err := f.CommandAs(permit, req.Caller, req.Workspace, abandonArrivalOp, &abandonArrivalIn{id})
	if err != nil {
		return Reply{}, err
	}
	return reply, recordArrival(f, permit, actAbandoned)
}

// abandonArrivalIn is the arrival to give up; without an id it is the one that is there.
type abandonArrivalIn struct {
	ID string `json:"id"`
}

var abandonArrivalOp = NewCommand[abandonArrivalIn, None]("AbandonArrivalHere", "Remove the rows of a workspace that has not arrived", Needs{}, func(tx *Tx, in *abandonArrivalIn) (Reply, error) {
	if _, err := tx.arrival(in.ID); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.dropArrival()
}, RunsWithoutWorkspace, WithSpaceEffect(EndsWorkspace))

// endIdleArrivalOp gives up an arrival of which no rows have come for arrivalIdle.
var endIdleArrivalOp = NewCommand[TimerIn, None]("EndIdleArrival", "Give up an idle move of a workspace", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	tx.countNothing()
	row, err := arrivals.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the arrival: %w", err)
	}
	switch {
	case row == nil || row.Value.State == ArrivalDone:
		err = tx.ClearTimer(timerArrival, "")
	case row.Value.UpdatedAt.Time().Add(arrivalIdle).After(tx.now):
		err = tx.SetTimer(timerArrival, "", row.Value.UpdatedAt.Time().Add(arrivalIdle))
	default:
		err = tx.dropArrival()
	}
	return Reply{Outcome: NoContent}, err
}, RunsWithoutWorkspace, WithSpaceEffect(EndsWorkspace))

// isArriving reports whether the rows of a workspace are coming.
func isArriving(v *storage.View) (bool, error) {
	there, err := v.Has(workspaceTable, nil)
	if err != nil || there {
		return false, err
	}
	row, err := arrivals.Get(v, nil)
	if err != nil {
		return false, fmt.Errorf("read the arrival: %w", err)
	}
	return row != nil && row.Value.State != ArrivalDone, nil
}

// partOfArrival is storage.Schema.Partial: of a workspace that arrives only the arrival itself is
// verified, with its timer.
func partOfArrival(v *storage.View) (func(storage.TableID, []byte) bool, error) {
	if arriving, err := isArriving(v); err != nil || !arriving {
		return nil, err
	}
	idle := timerKey(nil, timerArrival, "")
	return func(id storage.TableID, fields []byte) bool {
		return id == arrivalTable || id == timerTable && bytes.Equal(fields, idle)
	}, nil
}
