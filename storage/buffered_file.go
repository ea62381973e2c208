package storage

import (
	"bufio"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableWrite is the size in bytes of the writes of tables. Pebble's own are of
// 4 KiB: a system call for each takes some hundredths of the processor time of a create.
const tableWrite = 128 << 10

// bufferedFile is a file that is written in large pieces. Pebble closes a table that it keeps after a
// sync, whose error it looks at, and asks for a sync of the beginning of a file a MiB behind what it has
// written: by then that part has been written.
//
// A file of values is not written like this. Pebble 2.1 panics where the last step of one fails, the
// sync and what is left in buffers, and gives a failed write back as an error (blob.FileWriter, which
// aborts what it has finished). So as much as possible is written before. Its writes are large: blocks
// of values.
type bufferedFile struct {
	vfs.File
	w *bufio.Writer
}

func newBufferedFile(f vfs.File) *bufferedFile {
	return &bufferedFile{File: f, w: bufio.NewWriterSize(f, tableWrite)}
}

func (f *bufferedFile) Write(b []byte) (int, error) { return f.w.Write(b) }

// Sync writes what is left, and returns when the file is on disk.
func (f *bufferedFile) Sync() error { return errors.Join(f.w.Flush(), f.File.Sync()) }

// SyncData is Sync without what the file system notes about the file.
func (f *bufferedFile) SyncData() error { return errors.Join(f.w.Flush(), f.File.SyncData()) }

// Close writes what is left.
func (f *bufferedFile) Close() error { return errors.Join(f.w.Flush(), f.File.Close()) }
