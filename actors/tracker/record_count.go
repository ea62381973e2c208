package tracker

import (
	"fmt"

	"switchyard/storage"
)

// recordCountSubject is the subject of a table's counter.
func recordCountSubject(table storage.TableID) storage.ID { return storage.ID{15: byte(table)} }

// countRecord adds to the counter of a table's records; it returns CONFLICT at the table's
// limit.
func (tx *Tx) countRecord(table storage.TableID, by int) error {
	subject := recordCountSubject(table)
	n, err := tx.Counter(recordCountTable, subject)
	if err != nil {
		return err
	}
	if b := quotas[table]; by > 0 && n >= b.most {
		return Conflict(fmt.Sprintf("The workspace has %d %s, the most there can be.", n, b.what), "Delete some of the "+b.what+" first.")
	}
	return tx.SetCounter(recordCountTable, subject, n+uint64(by)) // adding a negative number wraps around, as intended
}
