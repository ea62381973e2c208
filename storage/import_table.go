package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/sstable"
)

// Value looks up a row of the shard among those received; nil when there is none.
// The import must be finished.
func (i *Import) Value(ctx context.Context, key []byte) ([]byte, error) {
	for _, path := range i.paths {
		value, err := i.valueIn(ctx, path, key)
		if err != nil {
			return nil, fmt.Errorf("import shard %d: read a row: %w", i.shard, err)
		}
		if value != nil {
			return value, nil
		}
	}
	return nil, nil
}

func (i *Import) valueIn(ctx context.Context, path string, key []byte) (value []byte, err error) {
	table, err := i.openTable(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	it, err := table.NewIter(sstable.NoTransforms, key, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	kv := it.First()
	if kv == nil || !bytes.Equal(kv.K.UserKey, key) {
		return nil, it.Error()
	}
	found, _, err := kv.Value(nil)
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(found)), found...), nil
}

// openTable opens a received table for reading.
func (i *Import) openTable(ctx context.Context, path string) (*sstable.Reader, error) {
	file, err := i.store.transfer.fs.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	table, err := sstable.NewReader(ctx, readable, i.store.transfer.reading)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrStream, err), readable.Close())
	}
	return table, nil
}

// prove checks that a table is a section which begins at start and does not reach
// beyond end, so that ingesting it touches nothing else, and returns where the
// next section begins.
func (i *Import) prove(ctx context.Context, path string, start, end []byte) (next []byte, err error) {
	table, err := i.openTable(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	from, next, err := replacedRange(ctx, table)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(from, start) || bytes.Compare(next, end) > 0 {
		return nil, fmt.Errorf("%w: its sections do not follow each other through the shard's range", ErrStream)
	}
	it, err := table.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	outside := false
	if kv := it.First(); kv != nil {
		outside = bytes.Compare(kv.K.UserKey, from) < 0
	}
	if kv := it.Last(); kv != nil {
		outside = outside || bytes.Compare(kv.K.UserKey, next) >= 0
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	if outside {
		return nil, fmt.Errorf("%w: a section has rows outside its bounds", ErrStream)
	}
	return next, nil
}

// replacedRange returns the one range that a section deletes before it writes.
func replacedRange(ctx context.Context, table *sstable.Reader) (start, end []byte, err error) {
	keys, err := table.NewRawRangeKeyIter(ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil {
		return nil, nil, err
	}
	if keys != nil {
		keys.Close()
		return nil, nil, fmt.Errorf("%w: a section has range keys", ErrStream)
	}
	it, err := table.NewRawRangeDelIter(ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil {
		return nil, nil, err
	}
	if it == nil {
		return nil, nil, fmt.Errorf("%w: a section replaces nothing", ErrStream)
	}
	defer it.Close()
	span, err := it.First()
	if err != nil {
		return nil, nil, err
	}
	if span != nil {
		start, end = bytes.Clone(span.Start), bytes.Clone(span.End)
		if span, err = it.Next(); err != nil {
			return nil, nil, err
		}
	}
	if start == nil || span != nil {
		return nil, nil, fmt.Errorf("%w: a section does not replace one range", ErrStream)
	}
	return start, end, nil
}
