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
	doc, found, err := common(selected, docs, &most, leaps)
	if err != nil || !found && *leaps > 0 {
		return nil, err
	}
	v := r.Reader()
	it, skip, err := v.iterate(t.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	defer func() { _ = it.Close() }()
	full := append(make([]byte, 0, skip+8), v.fullKey(t.ID, nil)...)
	for ; found; doc, found, err = common(selected, docs, &most, leaps) {
		full = DocKey(full[:skip], doc)
		if !it.SeekGE(full) || !bytes.HasPrefix(it.Key(), full) {
			if err := it.Error(); err != nil {
				return nil, fmt.Errorf("%s: read a record: %w", t.Name, err)
			}
			return nil, fmt.Errorf("%s: %w", t.Name, ErrFilterSets)
		}
		if pk := it.Key()[skip:]; bytes.Compare(pk, after) > 0 {
			value, err := it.ValueAndErr()
			if err != nil {
				return nil, fmt.Errorf("%s: read a record: %w", t.Name, err)
			}
			rec, err := ParseRecord(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			more, err := fn(pk, rec)
			if err != nil || !more {
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
func common(selected *Selection, docs Docs, most *Doc, leaps *int) (Doc, bool, error) {
	for *leaps > 0 {
		*leaps--
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
