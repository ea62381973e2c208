package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"
)

// MaxProblems bounds how many problems a Report lists; more are only counted.
const MaxProblems = 1000

// Problem is something in the state that must not be.
type Problem struct {
	Shard     Shard
	Workspace ID
	// Table names the table, index or rows, Key the key behind the table's id.
	Table string
	Key   []byte
	Text  string
	// Across is set if rows of two shards don't agree. Where one of their replicas has applied less of its
	// log than another node's, both shards may be sound.
	Across bool
}

// String returns the place and the fault.
func (p Problem) String() string {
	return fmt.Sprintf("shard %d, workspace %s, %s %x: %s", p.Shard, p.Workspace, p.Table, p.Key, p.Text)
}

// Report is the verifier's result.
type Report struct {
	// Workspaces, Records, Entries (of indexes) and Rows (plain ones) were proved.
	Workspaces, Records, Entries, Rows int64
	// Problems lists the first MaxProblems of the Found ones. Across of these are between two shards.
	Problems      []Problem
	Found, Across int64
	// Unfinished lists the first MaxProblems workspaces of which records are still to come. Awaited
	// counts what Check functions have found in such workspaces. It is no problem.
	Unfinished []ID
	Awaited    int64
}

// Clean reports whether no problem was found.
func (r *Report) Clean() bool { return r.Found == 0 }

// Verify is VerifyPart of a state with all shards.
func Verify(ctx context.Context, db *pebble.DB, schemas ...*Schema) (*Report, error) {
	return VerifyPart(ctx, db, Part{}, schemas...)
}

// VerifyPart walks one moment of a state and proves that every key belongs to what
// the schemas declare; that every record decodes and its primary key and header
// follow from its value; that every index entry, shard-wide ones included,
// follows from a record, and every record has all of its entries; that the bytes
// kept as counted are there; and whatever the schemas' own checks add.
//
// It reads the state once, as many shards at a time as there are processors, each in
// order, and its memory does not depend on how much there is: entries found and entries
// due are compared as sums of hashes, per index and workspace (shard-wide: per index and
// shard). Only an index that differs is gone through again key by key, with at most
// detailBatch hashes of 8 bytes in memory for a shard at once. The schemas' checks of
// different shards run at the same time. Problems are in the order of the shards.
// References to shards that the state lacks are not checked.
//
// An error means that the walk itself failed, not that something is wrong.
func VerifyPart(ctx context.Context, db *pebble.DB, part Part, schemas ...*Schema) (*Report, error) {
	all, err := keepers(schemas)
	if err != nil {
		return nil, err
	}
	snap := db.NewSnapshot()
	defer func() { _ = snap.Close() }()
	report, err := verifyShards(ctx, Walk{snap, part}, schemas, all)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return report, nil
}

func verifyShards(ctx context.Context, walk Walk, schemas []*Schema, keepers map[TableID]*keeper) (*Report, error) {
	shards, err := walk.Shards()
	if err != nil {
		return nil, err
	}
	reports := make([]Report, max(1, len(shards)))
	all, shared := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range reports {
		// Keys that are of no shard are between two, before the first or behind the last.
		var part pebble.IterOptions
		if i > 0 {
			part.LowerBound, _ = ShardRange(shards[i])
		}
		if i+1 < len(shards) {
			part.UpperBound, _ = ShardRange(shards[i+1])
		}
		v := &verifier{Walk: walk, ctx: shared, schemas: schemas, keepers: keepers, report: &reports[i], meter: NewMeter(schemas...)}
		all.Go(func() error { return v.run(&part) })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	report := &Report{}
	for i := range reports {
		report.join(&reports[i])
	}
	for _, s := range schemas {
		if s.CheckStore == nil {
			continue
		}
		if err := s.CheckStore(&walk, report.add); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// verifier verifies one shard.
type verifier struct {
	Walk
	ctx     context.Context
	schemas []*Schema
	keepers map[TableID]*keeper
	report  *Report
	view    View // of the workspace being walked
	entries Entries
	near    checksums // of the workspace being walked
	wide    checksums // of the shard being walked
	meter   *Meter
	bytes   Bytes                                // of the workspace being walked
	partial func(id TableID, fields []byte) bool // of the workspace being walked; see Schema.Partial
	// unfinished is set if records of the workspace being walked are still to come.
	unfinished bool
	scratch    []byte
}

func (v *verifier) run(part *pebble.IterOptions) error {
	it, err := v.db.NewIter(part)
	if err != nil {
		return fmt.Errorf("open an iterator: %w", err)
	}
	defer func() { _ = it.Close() }()
	begun := false
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		shard, workspace, id, fields, err := SplitKey(key)
		if err != nil {
			v.problem(Problem{Table: "state", Key: bytes.Clone(key), Text: "key shorter than its prefix"})
			continue
		}
		if prefix := [prefixLen]byte(key[:prefixLen]); !begun || prefix != v.view.prefix {
			if begun {
				if err := v.endRange(shard); err != nil {
					return err
				}
			}
			begun = true
			v.view = NewView(v.db, shard, workspace)
			v.bytes = Bytes{}
			if err := v.beginRange(); err != nil {
				return err
			}
			if !workspace.IsService() && v.partial == nil {
				v.report.Workspaces++
			}
		}
		if v.partial != nil && !v.partial(id, fields) {
			continue
		}
		v.meter.add(&v.bytes, id, int64(len(key)+len(value)))
		v.key(id, fields, key, value)
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("walk the state: %w", err)
	}
	if begun {
		if err := v.endRange(v.view.Shard() + 1); err != nil {
			return err
		}
	}
	return nil
}

// beginRange finds out which rows of a range are verified.
func (v *verifier) beginRange() error {
	v.partial, v.unfinished = nil, false
	view := v.view
	view.key = nil
	for _, s := range v.schemas {
		if s.Partial != nil {
			verified, err := s.Partial(&view)
			if err != nil {
				return err
			}
			if verified != nil {
				v.partial = verified
			}
		}
		if s.Unfinished != nil && !v.view.Workspace().IsService() {
			unfinished, err := s.Unfinished(&view)
			if err != nil {
				return err
			}
			v.unfinished = v.unfinished || unfinished
		}
	}
	if v.unfinished && len(v.report.Unfinished) < MaxProblems {
		v.report.Unfinished = append(v.report.Unfinished, v.view.Workspace())
	}
	return nil
}

// endRange ends the range the walk was in; next is the shard it goes on in.
func (v *verifier) endRange(next Shard) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	if err := v.compareEntries(&v.near, false); err != nil {
		return err
	}
	if next != v.view.Shard() {
		if err := v.compareEntries(&v.wide, true); err != nil {
			return err
		}
	}
	if v.view.Workspace() == SystemID || v.partial != nil {
		return nil
	}
	for _, s := range v.schemas {
		view := NewView(v.db, v.view.Shard(), v.view.Workspace())
		if s.Check != nil {
			if err := s.Check(&view, v.checked); err != nil {
				return err
			}
		}
		if s.CheckBytes != nil {
			if err := s.CheckBytes(&view, v.bytes, v.problem); err != nil {
				return err
			}
		}
	}
	return nil
}

// key proves one key and value by itself, and adds it up.
func (v *verifier) key(id TableID, fields, key, value []byte) {
	k := v.keepers[id]
	switch {
	case k == nil:
		v.problem(Problem{Table: fmt.Sprintf("id %d", id), Key: bytes.Clone(fields), Text: "no table, index or row has this id"})
	case k.row != nil:
		v.report.Rows++
		if k.row.Check == nil {
			return
		}
		view := v.view
		view.key = nil
		if err := k.row.Check(&view, fields, value); err != nil {
			report := v.checked
			if errors.Is(err, ErrFormat) {
				report = v.problem
			}
			report(Problem{Table: k.name, Key: bytes.Clone(fields), Text: err.Error()})
		}
	case k.index != nil:
		v.report.Entries++
		if k.index.wide {
			v.wide.at(id).found.add(v.hashes(key, value))
		} else {
			v.near.at(id).found.add(v.hashes(key, value))
		}
	default:
		v.report.Records++
		if why := v.record(k, fields, value); why != "" {
			v.problem(Problem{Table: k.name, Key: bytes.Clone(fields), Text: why})
		}
	}
}

// record proves a record by itself and adds up the entries due to it.
func (v *verifier) record(k *keeper, fields, value []byte) string {
	rec, err := ParseRecord(value)
	if err != nil {
		return err.Error()
	}
	pk, h, err := k.table.derive(&v.entries, v.view.prefix, rec)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(pk, fields) {
		return fmt.Sprintf("its value belongs under the primary key %x", pk)
	}
	v.entries.each(func(key, value []byte) {
		t := &v.near
		if v.keepers[TableID(key[prefixLen])].index.wide {
			t = &v.wide
		}
		t.at(TableID(key[prefixLen])).due.add(v.hashes(key, value))
	})
	if h != rec.Header() {
		return fmt.Sprintf("its header says flags %d and team %s, its value flags %d and team %s", rec.Flags(), rec.Team(), h.Flags, h.Team)
	}
	return ""
}

// checked reports what a Check function has found in the range the walk is in.
func (v *verifier) checked(p Problem) {
	if v.unfinished {
		v.report.Awaited++
		return
	}
	v.problem(p)
}

// problem reports something about the range the walk is in.
func (v *verifier) problem(p Problem) {
	p.Shard, p.Workspace = v.view.Shard(), v.view.Workspace()
	v.report.add(p)
}

// join adds what was found elsewhere.
func (r *Report) join(o *Report) {
	r.Workspaces, r.Records, r.Entries, r.Rows = r.Workspaces+o.Workspaces, r.Records+o.Records, r.Entries+o.Entries, r.Rows+o.Rows
	r.Problems = append(r.Problems, o.Problems[:min(len(o.Problems), MaxProblems-len(r.Problems))]...)
	r.Unfinished = append(r.Unfinished, o.Unfinished[:min(len(o.Unfinished), MaxProblems-len(r.Unfinished))]...)
	r.Found, r.Across, r.Awaited = r.Found+o.Found, r.Across+o.Across, r.Awaited+o.Awaited
}

func (r *Report) add(p Problem) {
	r.Found++
	if p.Across {
		r.Across++
	}
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, p)
	}
}
