package storage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Export is the rows of a shard at one moment, as a stream for an Import. It is
// used by one goroutine.
type Export struct {
	transfer *transfer
	ctx      context.Context
	dir      string
	sections []section
	size     int64
	work     restingWork
	print    *printer // nil: no fingerprint is made

	head   []byte   // to be read before the file
	file   vfs.File // of the section being read
	next   int      // section after it
	closed bool
}

// section is one table of an export, on disk.
type section struct {
	size int64
	sum  uint64
}

// Export copies a shard's rows as they are now into files of their own, for a
// stream whose Size is known before it is read. At most maxExports exist at once: another
// one waits until one of them is closed or was read to its end, up to a time, and fails with ErrBusy then.
// It fails with ErrNoRoom if the disk would have less than half of its reserve left.
// When ctx ends, the copying or the reading ends with its cause.
func (s *Store) Export(ctx context.Context, shard Shard, wait time.Duration) (*Export, error) {
	return s.ExportWith(ctx, shard, ExportOptions{Wait: wait})
}

// ExportOptions are the choices of an export.
type ExportOptions struct {
	Wait time.Duration // for other exports to end
	// Look is called with the rows that are copied, before they are; its error ends the
	// export. Nil: nothing is looked at.
	Look func(pebble.Reader) error
	// Rests returns how long the copying rests after some milliseconds of work: at full speed it
	// takes a whole processor, and requests wait. Nil: it does not rest.
	Rests func(work time.Duration) time.Duration
	// Prints makes a fingerprint of the rows, but for those whose keys are among Without.
	Prints  bool
	Without [][]byte
}

// ExportWith is Export with options.
func (s *Store) ExportWith(ctx context.Context, shard Shard, options ExportOptions) (*Export, error) {
	t := &s.transfer
	if err := t.takeSlot(ctx, options.Wait); err != nil {
		return nil, fmt.Errorf("export shard %d: %w", shard, err)
	}
	e := &Export{transfer: t, ctx: ctx}
	err := s.roomToExport(shard)
	if err == nil {
		err = e.write(s.state, shard, &options)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export shard %d: %w", shard, err), e.Close())
	}
	e.head = streamHeader(shard, len(e.sections))
	e.size = int64(len(e.head))
	for _, s := range e.sections {
		e.size += sectionHeaderLen + s.size
	}
	return e, nil
}

// EstimateSize returns about how many bytes of the disk a shard's rows take. Rows that are only in memory are
// not counted.
func (s *Store) EstimateSize(shard Shard) (uint64, error) {
	start, end := ShardRange(shard)
	size, err := s.state.EstimateDiskUsage(start, end)
	if err != nil {
		return 0, fmt.Errorf("estimate the size of shard %d: %w", shard, err)
	}
	return size, nil
}

// roomToExport checks that the disk has room for a copy of a shard's rows, as far as their size is
// known: what is only in memory is not counted.
func (s *Store) roomToExport(shard Shard) error {
	spare, watched := s.space.spare()
	if !watched {
		return nil
	}
	size, err := s.EstimateSize(shard)
	if err != nil {
		return err
	}
	if size > spare {
		return fmt.Errorf("%w: they have %d MiB, and the disk %d MiB to spare", ErrNoRoom, size>>20, spare>>20)
	}
	return nil
}

// Size of the stream in bytes.
func (e *Export) Size() int64 { return e.size }

// Fingerprint returns the fingerprint of the rows copied, if the export was to make one.
func (e *Export) Fingerprint() Fingerprint {
	if e.print == nil {
		return Fingerprint{}
	}
	return e.print.fingerprint()
}

// Read reads the stream. At its end the export is closed.
func (e *Export) Read(p []byte) (int, error) {
	for {
		switch {
		case e.ctx.Err() != nil:
			return 0, context.Cause(e.ctx)
		case len(e.head) > 0:
			n := copy(p, e.head)
			e.head = e.head[n:]
			return n, nil
		case e.file != nil:
			n, err := e.file.Read(p)
			if !errors.Is(err, io.EOF) {
				return n, err
			}
			if n > 0 {
				return n, nil
			}
			if err := e.endTable(); err != nil {
				return 0, err
			}
		case e.next < len(e.sections):
			var err error
			if e.file, err = e.transfer.fs.Open(sectionPath(e.dir, e.next), vfs.SequentialReadsOption); err != nil {
				return 0, fmt.Errorf("read an export: %w", err)
			}
			e.head = sectionHeader(e.sections[e.next].size, e.sections[e.next].sum)
			e.next++
		default:
			// The receiver may take minutes until it has all in place, or hang.
			if err := e.Close(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
	}
}

func (e *Export) endTable() error {
	if e.file == nil {
		return nil
	}
	err := e.file.Close()
	e.file = nil
	return err
}

// Close removes the files and lets another export begin.
func (e *Export) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.endTable()
	if e.dir != "" {
		err = errors.Join(err, e.transfer.fs.RemoveAll(e.dir))
	}
	<-e.transfer.slots
	if err != nil {
		return fmt.Errorf("remove an export: %w", err)
	}
	return nil
}

// write copies the rows into tables.
func (e *Export) write(db *pebble.DB, shard Shard, options *ExportOptions) (err error) {
	start, end := ShardRange(shard)
	if end == nil {
		return errors.New("the last shard number has no end of its range")
	}
	if e.dir, err = e.transfer.makeDir("out", shard); err != nil {
		return err
	}
	snap := db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	if options.Look != nil {
		if err := options.Look(snap); err != nil {
			return err
		}
	}
	e.work = startWork(e.ctx, options.Rests)
	if options.Prints {
		e.print = newPrinter(options.Without)
	}
	it, err := snap.NewIterWithContext(e.ctx, &pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return fmt.Errorf("open an iterator: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for more := it.First(); start != nil; {
		if start, more, err = e.section(it, more, start, end); err != nil {
			return err
		}
	}
	return nil
}

// section writes one table, from start on. It returns where the next one begins;
// nil when this was the last.
func (e *Export) section(it *pebble.Iterator, more bool, start, end []byte) (next []byte, _ bool, err error) {
	if len(e.sections) == maxSections {
		return nil, false, errors.New("the shard is too large for a stream")
	}
	out, err := createSection(e.transfer.fs, sectionPath(e.dir, len(e.sections)))
	if err != nil {
		return nil, false, err
	}
	table := sstable.NewWriter(out, e.transfer.writing)
	for more {
		if e.ctx.Err() != nil {
			return nil, false, errors.Join(context.Cause(e.ctx), table.Close())
		}
		if table.Raw().EstimatedSize() >= sectionBytes {
			next = bytes.Clone(it.Key())
			break
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = table.Set(it.Key(), value)
		}
		if err != nil {
			return nil, false, errors.Join(err, table.Close())
		}
		if e.print != nil {
			e.print.add(it.Key(), value)
		}
		e.work.row(value)
		more = it.Next()
	}
	if next == nil {
		if err := it.Error(); err != nil {
			return nil, false, errors.Join(err, table.Close())
		}
	} else {
		end = next
	}
	if err := errors.Join(table.DeleteRange(start, end), table.Close()); err != nil {
		return nil, false, err
	}
	e.sections = append(e.sections, section{size: out.size, sum: out.sum.Sum64()})
	return next, more, nil
}

// sectionFile is a table being written, with the facts that the stream needs of it. It implements
// Pebble's objstorage.Writable.
type sectionFile struct {
	file vfs.File
	out  *bufio.Writer // a table is written in blocks of a few kilobytes
	size int64
	sum  *xxhash.Digest
}

const exportBuffer = 256 << 10

func createSection(fs vfs.FS, path string) (*sectionFile, error) {
	file, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("make a table: %w", err)
	}
	return &sectionFile{file: file, out: bufio.NewWriterSize(file, exportBuffer), sum: xxhash.New()}, nil
}

// Write appends to the table.
func (f *sectionFile) Write(p []byte) error {
	_, _ = f.sum.Write(p) // never fails
	n, err := f.out.Write(p)
	f.size += int64(n)
	return err
}

// Finish ends the table. It is not made durable: a crash ends the export.
func (f *sectionFile) Finish() error { return errors.Join(f.out.Flush(), f.file.Close()) }

// Abort closes the table; the export deletes the file.
func (f *sectionFile) Abort() { _ = f.file.Close() }
