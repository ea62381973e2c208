package tracker

import (
	"errors"
	"fmt"
	"slices"

	"switchyard/storage"
)

// TakeRowsIn is a block of rows, as storage.ReadRows reads it, with its number.
type TakeRowsIn struct {
	ID   string     `path:"id" rules:"min=1,max=64"`
	N    Opt[int64] `query:"n" rules:"required,min=0"`
	Body []byte     `raw:"rows"`
}

const (
	// maxRowsBody bounds a block of rows in bytes. A block of more than half a MiB has one row.
	maxRowsBody = 20 << 20
	// maxRowsWrites bounds what a block writes.
	maxRowsWrites = maxRowsBody + 1<<20
)

// TakeRows takes the next block of rows of a workspace that moves here. A block that was taken
// before is passed over. The audit has the beginning and the end of the arrival.
var TakeRows = NewCommand[TakeRowsIn, ArrivalAnswer]("TakeRows", "Take in rows of a workspace that moves here", Needs{Level: Operator}, func(tx *Tx, in *TakeRowsIn) (Reply, error) {
	row, err := tx.arrival(in.ID)
	if err != nil {
		return Reply{}, err
	}
	record := row.Value
	switch {
	case in.N.Value < record.Next:
		return jsonReply(Done, ArrivalAnswer{record.Arrival})
	case in.N.Value > record.Next:
		return Reply{}, Conflict(fmt.Sprintf("Block %d comes next.", record.Next), "Send the blocks in order, one after another.")
	}
	err = storage.ReadRows(in.Body, func(c *storage.RowChange) error { return tx.takeRow(&record, c) })
	if errors.Is(err, storage.ErrRows) {
		return Reply{}, BadRequest(Fault{Message: "The body is not a block of rows."})
	}
	if err != nil {
		return Reply{}, err
	}
	record.Next++
	record.Bytes += int64(len(in.Body))
	record.UpdatedAt = At(tx.now)
	if _, err := arrivals.Update(tx, row, &record); err != nil {
		return Reply{}, fmt.Errorf("note an arrival: %w", err)
	}
	// The rows may replace rows that the buffer has cached.
	tx.buffer.forget()
	return jsonReply(Done, ArrivalAnswer{record.Arrival})
}, WithoutKey, RunsWithoutWorkspace, BodyUpTo(maxRowsBody), WritesUpTo(maxRowsWrites), Refuses(CodeConflict), Audits(auditWorkspace))

// takeRow makes one change of the rows that have arrived.
func (tx *Tx) takeRow(record *arrivalRecord, c *storage.RowChange) error {
	id := c.Table()
	if !arrives(id) || c.Op == storage.RowDeleteRange && !withinTable(c) {
		return BadRequest(Fault{Message: fmt.Sprintf("Has a row of table %d, which is not one of a workspace.", id)})
	}
	if id == workspaceTable {
		if c.Op != storage.RowSet || len(c.Key) != 1 {
			return BadRequest(Fault{Message: "Has the workspace's own row under another key, or removes it."})
		}
		record.Workspace = slices.Clone(c.Value)
		return nil
	}
	if err := tx.Writer().TakeRow(c); err != nil {
		return fmt.Errorf("take in a workspace: %w", err)
	}
	return nil
}

// withinTable reports whether a range of rows to be deleted lies in one table.
func withinTable(c *storage.RowChange) bool {
	return len(c.Value) > 0 && (c.Value[0] == c.Key[0] || len(c.Value) == 1 && c.Value[0] == c.Key[0]+1)
}

// arrives reports whether a workspace that moves here may bring rows under an id.
func arrives(id storage.TableID) bool { return arriving[id] && !StaysBehind(id) }

// arriving are the ids of the rows within a workspace. It is made once, as meter is.
var arriving [256]bool
