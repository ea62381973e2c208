package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// An export is a shard's whole key range at one moment, as a stream that another
// node puts in place of its own: a header (magic and format, 6 bytes; shard, 2 bytes
// big endian), then sections, each its length (8 bytes, big endian) and a sorted
// table in Pebble's format, and a length of zero at the end. Every table deletes the
// part of the range it covers before it fills it, so that ingesting all of them at
// once replaces the range, whatever was in it. Tables carry their own checksums.
const (
	exportMagic  = "SYEXP\x01"
	exportHeader = len(exportMagic) + 2
	// exportSection is where a table ends and the next begins, in bytes of keys and
	// values.
	exportSection = 64 << 20
	// maxSection bounds a table: a section, one more row, and what a table adds.
	maxSection = exportSection * 2
	// maxSections bounds a stream.
	maxSections = 1 << 16
	exportDir   = "export"
)

// ErrExport is in the chain of errors about streams that are no export, or not of
// the shard they should be of.
var ErrExport = errors.New("storage: not an export of the shard")

// Export is a shard's rows, ready to be sent. It is an io.ReadCloser; Close removes
// its files.
type Export struct {
	// Size of the stream in bytes.
	Size int64

	store *Store
	files []vfs.File
	paths []string
	from  io.Reader
	quit  <-chan struct{}
}

var errQuit = errors.New("storage: the export was given up")

// Export writes a shard's rows, as they are now, into temporary files. When quit is
// closed it ends with an error, and so does reading.
func (s *Store) Export(shard Shard, quit <-chan struct{}) (*Export, error) {
	e := &Export{store: s, quit: quit}
	if err := e.write(shard); err != nil {
		return nil, errors.Join(fmt.Errorf("export shard %d: %w", shard, err), e.Close())
	}
	return e, nil
}

func (e *Export) write(shard Shard) (err error) {
	start, end := ShardRange(shard)
	snapshot := e.store.state.NewSnapshot()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	it, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	for valid, from := it.First(), start; from != nil; {
		next := end
		w, err := e.section()
		if err != nil {
			return err
		}
		size := 0
		for n := 0; valid; valid = it.Next() {
			if size >= exportSection {
				next = append([]byte(nil), it.Key()...)
				break
			}
			value, err := it.ValueAndErr()
			if err == nil {
				err = w.Set(it.Key(), value)
			}
			if err != nil {
				return errors.Join(err, w.Close())
			}
			size += len(it.Key()) + len(value)
			if n++; n%1024 == 0 && e.quitted() {
				return errors.Join(errQuit, w.Close())
			}
		}
		if err := errors.Join(w.DeleteRange(from, next), w.Close()); err != nil {
			return err
		}
		if from = next; !valid {
			from = nil
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	return e.assemble(shard)
}

// section begins a table.
func (e *Export) section() (*sstable.Writer, error) {
	path, err := e.store.temporary()
	if err != nil {
		return nil, err
	}
	f, err := e.store.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	e.paths = append(e.paths, path)
	return sstable.NewWriter(objstorageprovider.NewFileWritable(f), e.store.tableOptions()), nil
}

// assemble opens what was written as one stream.
func (e *Export) assemble(shard Shard) error {
	parts := []io.Reader{}
	piece := func(b []byte) {
		parts = append(parts, &bytesReader{b})
		e.Size += int64(len(b))
	}
	piece(binary.BigEndian.AppendUint16([]byte(exportMagic), uint16(shard)))
	for _, path := range e.paths {
		f, err := e.store.fs.Open(path, vfs.SequentialReadsOption)
		if err != nil {
			return err
		}
		e.files = append(e.files, f)
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() > maxSection {
			return fmt.Errorf("a table of %d bytes", info.Size())
		}
		piece(binary.BigEndian.AppendUint64(nil, uint64(info.Size())))
		parts = append(parts, f)
		e.Size += info.Size()
	}
	piece(make([]byte, 8))
	e.from = io.MultiReader(parts...)
	return nil
}

// bytesReader reads a slice once.
type bytesReader struct{ left []byte }

// Read implements io.Reader.
func (r *bytesReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (e *Export) quitted() bool {
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}

// Read implements io.Reader.
func (e *Export) Read(b []byte) (int, error) {
	if e.quitted() {
		return 0, errQuit
	}
	return e.from.Read(b)
}

// Close removes the export's files.
func (e *Export) Close() error {
	var errs []error
	for _, f := range e.files {
		errs = append(errs, f.Close())
	}
	for _, path := range e.paths {
		errs = append(errs, e.store.fs.Remove(path))
	}
	e.files, e.paths = nil, nil
	return errors.Join(errs...)
}

// temporary names a new file for an export. What a crash leaves there is removed by
// Open.
func (s *Store) temporary() (string, error) {
	dir := filepath.Join(s.dir, exportDir)
	if err := s.fs.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a directory for exports: %w", err)
	}
	return filepath.Join(dir, fmt.Sprintf("%d.sst", s.temporaries.Add(1))), nil
}

// clearTemporary removes what exports left behind.
func clearTemporary(cfg Config) error {
	if err := cfg.FS.RemoveAll(filepath.Join(cfg.Dir, exportDir)); err != nil {
		return fmt.Errorf("remove old exports: %w", err)
	}
	return nil
}

// tableOptions are those of tables the state takes in.
func (s *Store) tableOptions() sstable.WriterOptions {
	return s.stateOptions.MakeWriterOptions(len(s.stateOptions.Levels)-1, s.state.FormatMajorVersion().MaxTableFormat())
}
