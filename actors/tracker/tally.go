package tracker

import (
	"fmt"

	"switchyard/storage"
)

// bounds are how many of each a workspace may have: they keep what is read at a
// time, and what a hostile caller can pile up, within limits.
var bounds = map[storage.TableID]struct {
	most uint64
	what string
}{
	teamTable:   {1_000, "teams"},
	memberTable: {10_000, "members"},
	tokenTable:  {10_000, "tokens"},

	labelTable:   {10_000, "labels"},
	projectTable: {10_000, "projects"},
	cycleTable:   {10_000, "cycles"},
	// A template may be as large as an issue, and there is no need for many.
	templateTable: {1_000, "templates"},
	agentTable:    {1_000, "agents"},
}

// tally counts records in or out; CONFLICT when there may be no more.
func (tx *Tx) tally(table storage.TableID, by int) error {
	subject := storage.ID{15: byte(table)}
	n, err := tx.Counter(tallyTable, subject)
	if err != nil {
		return err
	}
	if b := bounds[table]; by > 0 && n >= b.most {
		return Conflict(fmt.Sprintf("The workspace has %d %s, the most there can be.", n, b.what), "Delete some of the "+b.what+" first.")
	}
	return tx.SetCounter(tallyTable, subject, n+uint64(by)) // wraps for -1
}
