package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Import receives the stream of an Export and replaces all rows that the shard has here. It is used
// by one goroutine.
type Import struct {
	store *Store
	shard Shard
	dir   string
	paths []string // tables received, by section
	err   error    // sticky

	head     [streamHeaderLen]byte // the header being received
	filled   int
	begun    bool // the stream's own header is through
	sections int

	file vfs.File // the table being received; nil between tables
	left uint64   // bytes of it to come
	due  uint64   // its checksum
	sum  *xxhash.Digest
	buf  []byte // bytes to write: a file may change the buffer that it gets
}

const importBuffer = 64 << 10

// Import begins to receive a shard. It must be closed.
func (s *Store) Import(shard Shard) (*Import, error) {
	dir, err := s.transfer.makeDir("in", shard)
	if err != nil {
		return nil, fmt.Errorf("import shard %d: %w", shard, err)
	}
	return &Import{store: s, shard: shard, dir: dir, sum: xxhash.New()}, nil
}

// Write takes the next bytes of the stream. It fails with ErrStream if they are not those of an
// Export.
func (i *Import) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && i.err == nil {
		n, err := i.consume(p)
		written += n
		p = p[n:]
		if err != nil {
			i.err = fmt.Errorf("import shard %d: %w", i.shard, err)
		}
	}
	return written, i.err
}

// consume uses some of p.
func (i *Import) consume(p []byte) (int, error) {
	if i.file != nil {
		n := int(min(uint64(len(p)), i.left, importBuffer))
		_, _ = i.sum.Write(p[:n]) // never fails
		i.buf = append(i.buf[:0], p[:n]...)
		if _, err := i.file.Write(i.buf); err != nil {
			return 0, err
		}
		if i.left -= uint64(n); i.left > 0 {
			return n, nil
		}
		return n, i.endTable()
	}
	want := sectionHeaderLen
	if !i.begun {
		want = streamHeaderLen
	} else if len(i.paths) == i.sections {
		return 0, fmt.Errorf("%w: it goes on behind its end", ErrStream)
	}
	n := copy(i.head[i.filled:want], p)
	if i.filled += n; i.filled < want {
		return n, nil
	}
	i.filled = 0
	if !i.begun {
		i.begun = true
		var err error
		i.sections, err = parseStreamHeader(i.head[:], i.shard)
		return n, err
	}
	return n, i.enter()
}

// enter begins the table whose header is received.
func (i *Import) enter() error {
	i.left, i.due = binary.BigEndian.Uint64(i.head[:]), binary.BigEndian.Uint64(i.head[8:])
	if i.left == 0 || i.left > maxSectionBytes {
		return fmt.Errorf("%w: a section of %d bytes", ErrStream, i.left)
	}
	// The disk may have had room when the stream began. The end of the import gives back what it took.
	if i.store.space.Shortage() == Spent {
		return ErrNoRoom
	}
	i.sum.Reset()
	path := sectionPath(i.dir, len(i.paths))
	var err error
	if i.file, err = i.store.transfer.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	i.paths = append(i.paths, path)
	return nil
}

// endTable ends a table: it is whole, and on disk.
func (i *Import) endTable() error {
	file := i.file
	i.file = nil
	if i.sum.Sum64() != i.due {
		return errors.Join(fmt.Errorf("%w: a section is damaged", ErrStream), file.Close())
	}
	return errors.Join(file.Sync(), file.Close())
}

// Finish proves that the stream was received to its end and covers the shard's
// range, and nothing else.
func (i *Import) Finish(ctx context.Context) error {
	if i.err != nil {
		return i.err
	}
	if !i.begun || i.file != nil || len(i.paths) < i.sections {
		return fmt.Errorf("import shard %d: %w: it ends early", i.shard, ErrStream)
	}
	at, end := ShardRange(i.shard)
	for _, path := range i.paths {
		var err error
		if at, err = i.prove(ctx, path, at, end); err != nil {
			return fmt.Errorf("import shard %d: %w", i.shard, err)
		}
	}
	if string(at) != string(end) {
		return fmt.Errorf("import shard %d: %w: its sections end early", i.shard, ErrStream)
	}
	return nil
}

// Ingest puts the rows received in the place of the shard's. It is atomic, and
// durable when it returns. Nothing else may write to the shard meanwhile. A flush
// just before spares other shards' writes from waiting for one.
func (i *Import) Ingest(ctx context.Context) error {
	ingest := func() error {
		return i.store.hurried(func() error { return i.store.state.Ingest(ctx, i.paths) })
	}
	if err := i.store.ReplaceState(i.shard, ingest); err != nil {
		return fmt.Errorf("import shard %d: %w", i.shard, err)
	}
	return nil
}

// Close deletes received data that was not ingested.
func (i *Import) Close() error {
	var err error
	if i.file != nil {
		err = i.file.Close()
		i.file = nil
	}
	if i.dir != "" {
		err = errors.Join(err, i.store.transfer.fs.RemoveAll(i.dir))
		i.dir = ""
	}
	if err != nil {
		return fmt.Errorf("remove an import: %w", err)
	}
	return nil
}
