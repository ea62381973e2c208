package storage

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// docRows looks up the records of docs in a table, newest first. A doc is only the first part of a
// record's primary key.
type docRows struct {
	it   *pebble.Iterator // over the table's records; at that of pk
	full []byte           // a key of the table, up to its fields
	skip int              // bytes of full before the fields
	pk   []byte           // the primary key of the record that was found; empty: of none
	// near is above 0 while many of the records are next to each other: then the next one is tried before
	// it is sought.
	near int
}

// The next record is tried from the beginning, nearFirst times. A record that is next to the one before adds
// 1 to docRows.near, up to nearMost, and one that is not takes 1 away: to try in vain costs as much as is
// saved otherwise.
const (
	nearFirst = 2
	nearMost  = 8
)

// newDocRows looks records up with an iterator, which close closes. table is the beginning of a key of the
// table, without fields.
func newDocRows(it *pebble.Iterator, table []byte) docRows {
	full := append(make([]byte, 0, len(table)+ListedKeyLen), table...)
	return docRows{it: it, full: full, skip: len(full), pk: make([]byte, 0, ListedKeyLen), near: nearFirst}
}

// find moves to a doc's record, and reports whether there is one.
func (r *docRows) find(doc Doc) (bool, error) {
	if len(r.pk) > 0 && DocOfKey(r.pk) == doc {
		return true, nil
	}
	try := r.near > 0 && len(r.pk) > 0
	r.full, r.pk = DocKey(r.full[:r.skip], doc), r.pk[:0]
	if try {
		if r.it.Next() && r.at() {
			r.near = min(r.near+1, nearMost)
			return true, nil
		}
		r.near--
	}
	if r.it.SeekGE(r.full) && r.at() {
		return true, nil
	}
	if err := r.it.Error(); err != nil {
		return false, fmt.Errorf("look up a doc: %w", err)
	}
	return false, nil
}

// at reports whether the iterator is at the record that is sought, and notes its primary key then.
func (r *docRows) at() bool {
	key := r.it.Key()
	if !bytes.HasPrefix(key, r.full) {
		return false
	}
	r.pk = append(r.pk, key[r.skip:]...)
	return true
}

// record reads the record that was found. It is valid until the next call of find.
func (r *docRows) record() (Record, error) { return currentRecord(r.it) }

func (r *docRows) close() { _ = r.it.Close() }
