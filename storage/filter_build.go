package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// filterStep is how many rows Build reads between two calls of step.
const filterStep = 2048

// ErrFilterSets says that sets could not be made from what is stored.
var ErrFilterSets = errors.New("storage: filter sets don't match what is stored")

// Build makes the sets from a view of one moment. Batches are noted meanwhile, from
// before that moment on. step is called now and then with what the sets take so far,
// and ends the work with an error. Afterwards lists can use the sets.
func (f *FilterSets) Build(v *View, step func(bytes int64) error) (err error) {
	defer func() {
		if err != nil {
			f.Break()
		}
	}()
	if f.version, err = f.spec.VersionAt(v); err != nil {
		return fmt.Errorf("read the version: %w", err)
	}
	b := filterBuild{f: f, v: v, step: step}
	if err := b.records(); err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	for _, table := range f.spec.Indexes {
		if err := b.index(table); err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
	}
	for _, table := range f.spec.Leading {
		if err := b.leading(table); err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
	}
	for _, o := range f.spec.Owned {
		if err := b.owned(o.Table); err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
	}
	f.measure()
	if err := step(f.Bytes()); err != nil {
		return err
	}
	f.ready.Store(true)
	return nil
}

type filterBuild struct {
	f    *FilterSets
	v    *View
	step func(int64) error
	read int
	ords []uint32 // of one value, descending while they are read
}

// count counts a row.
func (b *filterBuild) count() error {
	if b.read++; b.read%filterStep != 0 {
		return nil
	}
	b.f.measure()
	return b.step(b.f.Bytes() + int64(4*cap(b.ords)))
}

// records numbers the records.
func (b *filterBuild) records() error {
	type sleeper struct {
		back  int
		until int64
	}
	var asleep []sleeper
	f := b.f
	err := b.v.Rows(f.spec.Table, nil, nil, func(pk, value []byte) (bool, error) {
		rec, err := ParseRecord(value)
		if err == nil && len(pk) != ListedKeyLen {
			err = ErrFilterSets
		}
		if err != nil {
			return false, err
		}
		if until := f.spec.Sleeps(rec); until > 0 {
			asleep = append(asleep, sleeper{len(f.docs), until})
		}
		f.docs = append(f.docs, DocOfKey(pk))
		return true, b.count()
	})
	if err != nil {
		return err
	}
	slices.Reverse(f.docs)
	f.docs = slices.Clip(f.docs)
	ords := make([]uint32, len(f.docs))
	for i := range ords {
		ords[i] = uint32(i)
	}
	f.live = *newFilterSet(ords, len(ords))
	f.setSize += f.live.size()
	for _, s := range asleep {
		f.sleep.set(uint32(len(f.docs)-1-s.back), s.until, len(f.docs))
	}
	return nil
}

// index makes the sets of an index, whose entries come value by value and, of each
// value, newest first.
func (b *filterBuild) index(table TableID) error {
	f := b.f
	var fields []byte
	begun := false
	err := b.v.Rows(table, nil, nil, func(key, _ []byte) (bool, error) {
		at := len(key) - ListedKeyLen
		if at < 0 {
			return false, ErrFilterSets
		}
		if !begun || !bytes.Equal(fields, key[:at]) {
			b.value(table, fields)
			fields, begun = append(fields[:0], key[:at]...), true
		}
		ord, found := b.older(DocOfKey(key[at:]))
		if !found {
			return false, ErrFilterSets
		}
		b.ords = append(b.ords, ord)
		return true, b.count()
	})
	if err == nil {
		b.value(table, fields)
	}
	if table != f.spec.Referenced || err != nil {
		return err
	}
	var parents []uint32
	for key := range f.sets {
		if key[0] == byte(table) && len(key) > ListedKeyLen {
			ord, found := f.ord(DocOfKey([]byte(key[1:])))
			if !found {
				return ErrFilterSets // it comes later, as an import may have it
			}
			parents = append(parents, ord)
		}
	}
	slices.Sort(parents)
	f.parents = *newFilterSet(parents, len(f.docs))
	f.setSize += f.parents.size()
	return nil
}

// older gives the ordinal of a doc that is older than the last one of the value.
func (b *filterBuild) older(doc Doc) (uint32, bool) {
	docs := b.f.docs
	high := len(docs)
	if n := len(b.ords); n > 0 {
		high = int(b.ords[n-1])
	}
	// Entries are mostly close to each other.
	width := 1
	for width < high && docs[high-width] > doc {
		width *= 2
	}
	low := max(high-width, 0)
	at, found := slices.BinarySearch(docs[low:high], doc)
	return uint32(low + at), found
}

// value makes the set of the value that was read.
func (b *filterBuild) value(table TableID, fields []byte) {
	if len(b.ords) == 0 {
		return
	}
	slices.Reverse(b.ords)
	s := newFilterSet(b.ords, len(b.f.docs))
	b.ords = b.ords[:0]
	b.f.key = append(append(b.f.key[:0], byte(table)), fields...)
	b.f.sets[string(b.f.key)] = s
	b.f.setSize += s.size() + len(b.f.key)
}

// leading makes the sets of an index whose entries begin with the primary key.
func (b *filterBuild) leading(table TableID) error {
	return b.v.Rows(table, nil, nil, func(key, _ []byte) (bool, error) {
		if len(key) < ListedKeyLen {
			return false, ErrFilterSets
		}
		ord, found := b.f.ord(DocOfKey(key))
		if !found {
			return false, ErrFilterSets
		}
		b.f.change(table, key[ListedKeyLen:], ord, true)
		return true, b.count()
	})
}

// owned makes the set of the records that have entries in a table of Owned rows.
func (b *filterBuild) owned(table TableID) error {
	return b.v.Rows(table, nil, nil, func(key, _ []byte) (bool, error) {
		if len(key) < len(ID{}) {
			return false, ErrFilterSets
		}
		if !b.f.counts(table, key) {
			return true, b.count()
		}
		ord, found := b.f.ord(DocOf(ID(key[:len(ID{})])))
		if !found {
			return false, ErrFilterSets
		}
		b.f.change(table, nil, ord, true)
		return true, b.count()
	})
}
