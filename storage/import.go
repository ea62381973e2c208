package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Import is an export on its way in. What is written to it goes to temporary files;
// nothing of the shard changes before Ingest. It belongs to one goroutine.
type Import struct {
	store *Store
	shard Shard

	head  []byte // of the stream, or of a section, as far as it came
	begun bool   // the stream's head was read
	ended bool   // the stream's end was read
	left  uint64 // bytes of the section still to come
	file  vfs.File
	paths []string
}

// Import begins to take in an export of a shard.
func (s *Store) Import(shard Shard) *Import { return &Import{store: s, shard: shard} }

// Write takes the next part of the stream. Its error wraps ErrExport when the
// stream is not what it should be.
func (i *Import) Write(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		took, err := i.take(b[n:])
		n += took
		if err != nil {
			return n, fmt.Errorf("import shard %d: %w", i.shard, err)
		}
	}
	return n, nil
}

// take takes at least one byte.
func (i *Import) take(b []byte) (int, error) {
	switch {
	case i.ended:
		return 0, fmt.Errorf("%w: bytes after its end", ErrExport)
	case i.left > 0:
		part := b[:min(uint64(len(b)), i.left)]
		if _, err := i.file.Write(part); err != nil {
			return 0, err
		}
		if i.left -= uint64(len(part)); i.left == 0 {
			return len(part), i.finish()
		}
		return len(part), nil
	}
	want := 8
	if !i.begun {
		want = exportHeader
	}
	n := min(len(b), want-len(i.head))
	if i.head = append(i.head, b[:n]...); len(i.head) < want {
		return n, nil
	}
	head := i.head
	i.head = i.head[:0]
	if !i.begun {
		i.begun = true
		if !bytes.HasPrefix(head, []byte(exportMagic)) || Shard(binary.BigEndian.Uint16(head[len(exportMagic):])) != i.shard {
			return n, ErrExport
		}
		return n, nil
	}
	size := binary.BigEndian.Uint64(head)
	switch {
	case size == 0:
		i.ended = true
		return n, nil
	case size > maxSection || len(i.paths) >= maxSections:
		return n, fmt.Errorf("%w: a section of %d bytes, the %dth", ErrExport, size, len(i.paths)+1)
	}
	path, err := i.store.temporary()
	if err != nil {
		return n, err
	}
	if i.file, err = i.store.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		return n, err
	}
	i.paths, i.left = append(i.paths, path), size
	return n, nil
}

// finish puts a section on disk.
func (i *Import) finish() error {
	f := i.file
	i.file = nil
	return errors.Join(f.Sync(), f.Close())
}

// Complete tells whether the stream has come to its end.
func (i *Import) Complete() error {
	if !i.ended {
		return fmt.Errorf("import shard %d: %w: it ends too early", i.shard, ErrExport)
	}
	return nil
}

// Ingest puts the rows in place of the shard's, all at once, and returns when that
// is on disk. A crash before leaves the shard as it was at some moment before.
func (i *Import) Ingest(ctx context.Context) error {
	if err := i.Complete(); err != nil {
		return err
	}
	if err := i.store.state.Ingest(ctx, i.paths); err != nil {
		return fmt.Errorf("import shard %d: %w", i.shard, err)
	}
	i.paths = nil
	// Above a memtable the tables are taken in like one: in memory until flushed.
	if err := i.store.FlushState(); err != nil {
		return fmt.Errorf("import shard %d: %w", i.shard, err)
	}
	return nil
}

// Close removes what was not ingested.
func (i *Import) Close() error {
	var errs []error
	if i.file != nil {
		errs = append(errs, i.file.Close())
		i.file = nil
	}
	for _, path := range i.paths {
		errs = append(errs, i.store.fs.Remove(path))
	}
	i.paths = nil
	return errors.Join(errs...)
}
