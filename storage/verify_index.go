package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
)

// detailBatch is how many entries' hashes are held at once when an index that
// differs is gone through.
const detailBatch = 1 << 20

// checksum adds up a set of keys without keeping them: equal sets have equal
// checksums, whatever their order, and different ones don't but for a chance of
// 1 in 2^128.
type checksum struct{ n, a, b uint64 }

func (t *checksum) add(a, b uint64) { t.n, t.a, t.b = t.n+1, t.a+a, t.b+b }

// balance is one index's entries: those there are, and those the records call for.
type balance struct{ found, due checksum }

type checksums struct{ of map[TableID]*balance }

func (t *checksums) at(id TableID) *balance {
	b := t.of[id]
	if b == nil {
		if t.of == nil {
			t.of = map[TableID]*balance{}
		}
		b = &balance{}
		t.of[id] = b
	}
	return b
}

// hashes returns two independent hashes of a key and its value.
func (v *verifier) hashes(key, value []byte) (uint64, uint64) {
	s := append(append(v.scratch[:0], key...), value...)
	v.scratch = binary.BigEndian.AppendUint32(s, uint32(len(key)))
	a := xxhash.Sum64(v.scratch)
	v.scratch = binary.BigEndian.AppendUint64(v.scratch, a)
	return a, xxhash.Sum64(v.scratch)
}

// compareEntries compares the entries found with the entries due, and looks for the differences.
func (v *verifier) compareEntries(t *checksums, wide bool) error {
	var differ []TableID
	for id, b := range t.of {
		if b.found != b.due {
			differ = append(differ, id)
		}
	}
	slices.Sort(differ)
	clear(t.of)
	for _, id := range differ {
		if err := v.detail(v.keepers[id], wide); err != nil {
			return err
		}
	}
	return nil
}

// detail goes through an index that differs, key by key.
func (v *verifier) detail(k *keeper, wide bool) error {
	var due uint64
	err := v.eachDue(k, wide, func(pk, key, value []byte) error {
		due++
		got, closer, err := v.db.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			v.entryProblem(k, key, fmt.Sprintf("missing for the record %x", pk))
			return nil
		}
		if err != nil {
			return fmt.Errorf("read an index entry: %w", err)
		}
		if !bytes.Equal(got, value) {
			v.entryProblem(k, key, fmt.Sprintf("has the value %x, the record %x calls for %x", got, pk, value))
		}
		return closer.Close()
	})
	if err != nil {
		return err
	}
	parts := due/detailBatch + 1
	for part := range parts {
		if err := v.superfluous(k, wide, part, parts); err != nil {
			return err
		}
	}
	return nil
}

// superfluous reports the entries no record calls for, of one part of them all.
func (v *verifier) superfluous(k *keeper, wide bool, part, parts uint64) error {
	due := map[uint64]struct{}{}
	err := v.eachDue(k, wide, func(_, key, _ []byte) error {
		if h := xxhash.Sum64(key); h%parts == part {
			due[h] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	home := v.view
	home.key = nil
	if wide {
		home = NewView(v.db, home.Shard(), SystemID)
	}
	stray := func(view View, misplaced bool) error {
		return view.Rows(k.id, nil, nil, func(fields, _ []byte) (bool, error) {
			key := view.fullKey(k.id, fields)
			if misplaced {
				if part == 0 {
					v.entryProblem(k, key, "lies outside the shard's own range")
				}
				return true, nil
			}
			if h := xxhash.Sum64(key); h%parts == part {
				if _, ok := due[h]; !ok {
					v.entryProblem(k, key, "no record calls for it")
				}
			}
			return true, nil
		})
	}
	if err := stray(home, false); err != nil || !wide {
		return err
	}
	return v.each(home.Shard(), SystemID, func(view *View) (bool, error) {
		return true, stray(*view, true)
	})
}

// eachDue derives the entries of one index from its records: those of the
// workspace being walked, or of every workspace of the shard.
func (v *verifier) eachDue(k *keeper, wide bool, fn func(pk, key, value []byte) error) error {
	table := k.table.describe().id
	var e Entries
	in := func(view View) error {
		return view.Rows(table, nil, nil, func(_, value []byte) (bool, error) {
			rec, err := ParseRecord(value)
			if err != nil {
				return true, nil // reported by the walk
			}
			pk, _, err := k.table.derive(&e, view.prefix, rec)
			if err != nil {
				return true, nil // reported by the walk
			}
			var failed error
			e.each(func(key, value []byte) {
				if TableID(key[prefixLen]) == k.id && failed == nil {
					failed = fn(pk, key, value)
				}
			})
			return true, failed
		})
	}
	if !wide {
		return in(NewView(v.db, v.view.Shard(), v.view.Workspace()))
	}
	return v.each(v.view.Shard(), SystemID, func(view *View) (bool, error) { return true, in(*view) })
}

func (v *verifier) entryProblem(k *keeper, key []byte, text string) {
	shard, workspace, _, fields, err := SplitKey(key)
	if err != nil {
		fields = key
	}
	v.report.add(Problem{Shard: shard, Workspace: workspace, Table: k.name, Key: bytes.Clone(fields), Text: text})
}
