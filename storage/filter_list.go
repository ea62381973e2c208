package storage

import (
	"bytes"
	"errors"
	"fmt"
)

// ListSelected walks the records of a selection that are also among docs (nil: all of
// it), newest first, from behind after, as ListWithin does. It closes both streams.
// When they have been moved leaps times, which it counts down, it gives up and returns the key to go on
// behind.
func (t *Table[T]) ListSelected(r Reader, selected *Selection, docs Docs, after []byte, leaps *int, fn func(pk []byte, rec Record) (bool, error)) (resume []byte, err error) {
	defer func() {
		err = errors.Join(err, selected.Close())
		if docs != nil {
			err = errors.Join(err, docs.Close())
		}
	}()
	most := ^Doc(0)
	if len(after) > 0 {
		most = DocOfKey(after)
	}
	v := r.Reader()
	doc, found, err := common(v, selected, docs, &most, leaps)
	if err != nil || !found && *leaps > 0 {
		return nil, err
	}
	rows := newDocRows(v, t.ID, v.records, nil)
	defer rows.close()
	if docs == nil {
		rows.near = 0 // only a search's newest docs are next to each other
	}
	for ; found; doc, found, err = common(v, selected, docs, &most, leaps) {
		is, err := rows.find(doc)
		if err == nil && !is {
			err = ErrFilterSets
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		if bytes.Compare(rows.pk, after) > 0 {
			rec, err := rows.record()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			more, err := fn(rows.pk, rec)
			if err != nil || !more {
				return nil, err
			}
			if err := v.step(len(rec)); err != nil {
				return nil, err
			}
		}
		if doc == 0 {
			return nil, nil
		}
		most = doc - 1
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	if *leaps <= 0 {
		return behindDoc(most), nil
	}
	return nil, nil
}

// behindDoc is a key to go on behind so that the docs from most down come next.
func behindDoc(most Doc) []byte {
	key := DocKey(make([]byte, 0, ListedKeyLen), min(most, newestDoc))
	return append(key, make([]byte, ListedKeyLen-len(key))...)
}

// common finds the newest doc not newer than most that both streams have, docs unless
// it is nil. When leaps, which it counts down, are used up there may be one from most
// down.
func common(v *View, selected *Selection, docs Docs, most *Doc, leaps *int) (Doc, bool, error) {
	for *leaps > 0 {
		*leaps--
		if err := v.Work(1); err != nil {
			return 0, false, err
		}
		doc, ok, err := selected.Next(*most)
		if err != nil || !ok || docs == nil {
			return doc, ok, err
		}
		other, ok, err := docs.Next(doc)
		if err != nil || !ok || other == doc {
			return other, ok, err
		}
		*most = other
	}
	return 0, false, nil
}
