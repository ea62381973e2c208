package storage

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// docRows looks up the records of docs in a table, newest first. A doc is only the first part of a
// record's primary key.
type docRows struct {
	v       *View
	table   TableID
	records RecordMoment     // of the moment that it reads
	it      *pebble.Iterator // over the table's records; nil until one is not in the cache
	full    []byte           // a key of the table, up to its fields
	skip    int              // bytes of full before the fields
	pk      []byte           // the primary key of the record that was found; empty: of none
	kept    *keptRecord      // that record, from the cache; nil: the iterator is at it
	missed  missed
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

// newDocRows looks records of a table up. v reads one moment, or the iterator, which close closes, reads that of
// records.
func newDocRows(v *View, table TableID, records RecordMoment, it *pebble.Iterator) docRows {
	full := append(make([]byte, 0, prefixLen+1+ListedKeyLen), v.fullKey(table, nil)...)
	return docRows{
		v: v, table: table, records: records, it: it,
		full: full, skip: len(full), pk: make([]byte, 0, ListedKeyLen), near: nearFirst,
	}
}

// find moves to a doc's record, and reports whether there is one.
func (r *docRows) find(doc Doc) (bool, error) {
	if len(r.pk) > 0 && DocOfKey(r.pk) == doc {
		return true, nil
	}
	try := r.near > 0 && len(r.pk) > 0 && r.kept == nil
	r.full, r.pk, r.kept = DocKey(r.full[:r.skip], doc), r.pk[:0], nil
	if r.records.keeps(r.table) {
		if r.kept, r.missed = r.records.find(r.full); r.kept != nil {
			r.pk = append(r.pk, r.kept.key[r.skip:]...)
			return true, nil
		}
	}
	if r.it == nil {
		it, _, err := r.v.iterate(r.table, nil)
		if err != nil {
			return false, err
		}
		r.it = it
	}
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
func (r *docRows) record() (Record, error) {
	if r.kept != nil {
		return r.kept.value, nil
	}
	rec, err := currentRecord(r.it)
	if err == nil && r.records.keeps(r.table) {
		r.records.keep(r.it.Key(), rec, r.missed)
	}
	return rec, err
}

func (r *docRows) close() {
	if r.it != nil {
		_ = r.it.Close()
	}
}
