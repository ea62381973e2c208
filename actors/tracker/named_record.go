package tracker

import (
	"fmt"
	"reflect"

	"switchyard/storage"
)

// Labels, projects, cycles and templates are alike: records that the whole workspace
// sees, limited in number, to which issues refer by ids that the service does not
// resolve (Decision 15). This file has what their operations share.

// RecordIn identifies a record.
type RecordIn struct {
	ID string `path:"id"`
}

// newestKey returns the primary key of a listed record; stored records have valid ids.
func newestKey[ID ~string](k storage.Key, id ID) storage.Key {
	parsed, _ := storage.ParseID(id)
	return k.DescID(parsed)
}

// recordIn returns the record that a path names, or a NOT_FOUND that calls it what.
func recordIn[T any](v *View, table *storage.Table[T], id, what string) (*storage.Row[T], error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, NotFound(what)
	}
	row, err := table.Get(v, storage.Key(nil).DescID(parsed))
	if err != nil {
		return nil, fmt.Errorf("read a %s: %w", what, err)
	}
	if row == nil {
		return nil, NotFound(what)
	}
	return row, nil
}

// showRecord answers with the record that a path names.
func showRecord[T any](v *View, table *storage.Table[T], in *RecordIn, what string) (Reply, error) {
	row, err := recordIn(v, table, in.ID, what)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &row.Value)
}

// newRecordID returns the id for a new record of a table, or CONFLICT at the table's
// limit.
func (tx *Tx) newRecordID(table storage.TableID) (string, error) {
	if err := tx.countRecord(table, 1); err != nil {
		return "", err
	}
	id, err := tx.NewID()
	if err != nil {
		return "", fmt.Errorf("make a record's id: %w", err)
	}
	return id.String(), nil
}

// addRecord stores a new record and answers with it.
func addRecord[T any](tx *Tx, table *storage.Table[T], record *T) (Reply, error) {
	body, err := table.Insert(tx, record)
	if err != nil {
		return Reply{}, fmt.Errorf("add a %s: %w", table.Name, err)
	}
	return Reply{Outcome: Created, Body: body}, nil
}

// changeRecord stores a changed record, sets the time of its change, and answers with
// it. It writes nothing if no field differs.
func changeRecord[T any](tx *Tx, table *storage.Table[T], row *storage.Row[T], record *T, updated *Timestamp) (Reply, error) {
	if reflect.DeepEqual(record, &row.Value) {
		return jsonReply(Done, record)
	}
	*updated = At(tx.now)
	body, err := table.Update(tx, row, record)
	if err != nil {
		return Reply{}, fmt.Errorf("change a %s: %w", table.Name, err)
	}
	return Reply{Body: body}, nil
}

// removeRecord removes the record that a path names. Issues that refer to it keep its
// id (Decision 41).
func removeRecord[T any](tx *Tx, table *storage.Table[T], in *RecordIn, what string) (Reply, error) {
	row, err := recordIn(&tx.View, table, in.ID, what)
	if err != nil {
		return Reply{}, err
	}
	return removeRow(tx, table, row, what)
}

// removeRow removes a record that was read.
func removeRow[T any](tx *Tx, table *storage.Table[T], row *storage.Row[T], what string) (Reply, error) {
	if err := table.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("delete a %s: %w", what, err)
	}
	return Reply{Outcome: NoContent}, tx.countRecord(table.ID, -1)
}
