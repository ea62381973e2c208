package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// transferKind declares a kind of record that leaves a workspace with an export and comes
// into another with an import, one line for each record (Decision 68). Every table and plain row of the schema belongs to a
// kind of transferKinds or is listed in notTransferred; a test holds both against the
// schema.
type transferKind struct {
	// name is the type of the lines.
	name string
	// tables are the tables and plain rows whose content the lines carry.
	tables []storage.TableID
	// places calls add for every line of the kind: made is the record's place in the order
	// of creation, and key names the record for line. add keeps no slice.
	places func(v *View, add func(made storage.ID, key []byte)) error
	// line appends the data of the line with a key.
	line func(v *View, b, key []byte) ([]byte, error)
	// take stores the record of a line in a workspace that is imported.
	take func(im *importing, data []byte) error
}

// with returns the kind with the function that takes its lines.
func (k transferKind) with(take func(im *importing, data []byte) error) transferKind {
	k.take = take
	return k
}

// recordKind declares the lines of a table whose stored JSON is what clients get.
func recordKind[T any](name string, table *storage.Table[T], made madeBy) transferKind {
	return transferKind{
		name: name, tables: []storage.TableID{table.ID}, places: placesOf(table.ID, made),
		line: func(v *View, b, key []byte) ([]byte, error) {
			return appendStored(v, table.ID, b, key, func(b []byte, rec storage.Record) ([]byte, error) {
				return append(b, rec.JSON()...), nil
			})
		},
	}
}

// rowKind declares the lines of plain rows; show appends the data of one.
func rowKind(name string, table storage.TableID, made madeBy, show func(b, key, value []byte) ([]byte, error)) transferKind {
	return transferKind{
		name: name, tables: []storage.TableID{table}, places: placesOf(table, made),
		line: func(v *View, b, key []byte) ([]byte, error) {
			value, err := v.Value(table, key, nil)
			if err != nil || value == nil {
				return nil, goneFrom(name, err)
			}
			return show(b, key, value)
		},
	}
}

// appendStored appends the data made of the stored record with a key.
func appendStored(v *View, table storage.TableID, b, key []byte, show func(b []byte, rec storage.Record) ([]byte, error)) ([]byte, error) {
	value, err := v.Value(table, key, nil)
	if err != nil || value == nil {
		return nil, goneFrom("a record", err)
	}
	rec, err := storage.ParseRecord(value)
	if err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	return show(b, rec)
}

func goneFrom(what string, err error) error {
	if err == nil {
		err = fmt.Errorf("%w: the row is not in the snapshot", storage.ErrFormat)
	}
	return fmt.Errorf("export %s: %w", what, err)
}

// madeBy returns a row's place in the order of creation: an id, or the beginning of one.
type madeBy func(key, value []byte) (storage.ID, error)

func placesOf(table storage.TableID, made madeBy) func(*View, func(storage.ID, []byte)) error {
	return func(v *View, add func(storage.ID, []byte)) error {
		err := v.Rows(table, nil, nil, func(key, value []byte) (bool, error) {
			at, err := made(key, value)
			if err == nil {
				add(at, key)
			}
			return true, err
		})
		if err != nil {
			return fmt.Errorf("walk table %d: %w", table, err)
		}
		return nil
	}
}

// newestLast is madeBy for keys that end with an id, newest first.
func newestLast(key, _ []byte) (id storage.ID, err error) {
	if len(key) < len(id) {
		return id, fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(key))
	}
	for i, c := range key[len(key)-len(id):] {
		id[i] = ^c
	}
	return id, nil
}

// byCreatedAt is madeBy for records whose keys don't have the order of creation. A record
// comes after everything with an id of the same millisecond.
func byCreatedAt(_, value []byte) (storage.ID, error) {
	rec, err := storage.ParseRecord(value)
	if err != nil {
		return storage.ID{}, err
	}
	return byTimeIn(rec.JSON(), "createdAt")
}

// byCreatedAtBehind is byCreatedAt for records that belong to others, whose ids are in fields of their JSON. Such a
// record comes behind the others also if a file that the service has not written gave it an earlier time: an import
// wants them before it.
func byCreatedAtBehind(fields ...string) madeBy {
	return func(key, value []byte) (storage.ID, error) {
		made, err := byCreatedAt(key, value)
		if err != nil {
			return made, err
		}
		for _, field := range fields {
			owner, ok := storage.ParseID(storedText(value, field))
			if !ok {
				return made, fmt.Errorf("%w: %s of a record", storage.ErrFormat, field)
			}
			if bytes.Compare(owner[:], made[:]) > 0 {
				made = owner
			}
		}
		return made, nil
	}
}

// byTimeIn returns the place behind everything of the time in a field of JSON.
func byTimeIn(text []byte, field string) (storage.ID, error) {
	at, err := time.Parse(timestampLayout, string(storedText(text, field)))
	if err != nil {
		return storage.ID{}, fmt.Errorf("%w: %s of a record", storage.ErrFormat, field)
	}
	id := lastPlace
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id, nil
}

// byStoredID is madeBy for records and rows of JSON that have an id of their own.
func byStoredID(_, value []byte) (storage.ID, error) {
	id, ok := storage.ParseID(storedText(value, "id"))
	if !ok {
		return id, fmt.Errorf("%w: id of a record", storage.ErrFormat)
	}
	return id, nil
}

// byOldestFirst is madeBy for keys that begin with an id.
func byOldestFirst(key, _ []byte) (id storage.ID, err error) {
	if len(key) < len(id) {
		return id, fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(key))
	}
	return storage.ID(key[:len(id)]), nil
}

// lastPlace is behind every id.
var lastPlace = storage.ID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// atFirst and atLast are madeBy for rows that come before and behind all others.
func atFirst(_, _ []byte) (storage.ID, error) { return storage.ID{}, nil }

func atLast(_, _ []byte) (storage.ID, error) { return lastPlace, nil }
