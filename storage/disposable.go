package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disposable is the file system of a store that a command makes, and removes if it fails. Pebble repeats a flush
// that failed until it succeeds. Writers of its memtables wait meanwhile, without a context. Other failed writes
// end the process. So no write fails here. The first one that the disk refuses is reported to the command, which
// ends then: until the store is closed, the rest of what is written is kept in memory.
type Disposable struct {
	vfs.FS
	told   func(error)
	failed atomic.Pointer[error] // of the first write that failed
	mu     sync.Mutex            // orders making the folders of files in memory
	memory *vfs.MemFS
}

// NewDisposable wraps a file system. told is called with the first error of a write; it must not block.
func NewDisposable(fs vfs.FS, told func(error)) *Disposable {
	return &Disposable{FS: fs, told: told, memory: vfs.NewMem()}
}

// Failed returns the error of the first write that failed, after which the files are of no use; nil: none has.
func (d *Disposable) Failed() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *Disposable) fail(err error) {
	if d.failed.CompareAndSwap(nil, &err) {
		d.told(err)
	}
}

// inMemory reports whether a file, or the rest of it, is in memory.
func (d *Disposable) inMemory(name string) bool {
	if d.Failed() == nil {
		return false
	}
	_, err := d.memory.Stat(name)
	return err == nil
}

// create makes a file in memory.
func (d *Disposable) create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	err := d.memory.MkdirAll(filepath.Dir(name), 0o700)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return d.memory.Create(name, category)
}

// Create implements vfs.FS.
func (d *Disposable) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.made(name, category, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (d *Disposable) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.made(newname, category, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

func (d *Disposable) made(name string, category vfs.DiskWriteCategory, on func() (vfs.File, error)) (vfs.File, error) {
	if d.Failed() == nil {
		f, err := on()
		if err == nil {
			return &disposableFile{File: f, of: d, name: name, category: category}, nil
		}
		d.fail(fmt.Errorf("make %s: %w", name, err))
	}
	return d.create(name, category)
}

// Open implements vfs.FS.
func (d *Disposable) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if d.inMemory(name) {
		return d.memory.Open(name, opts...)
	}
	return d.FS.Open(name, opts...)
}

// OpenDir implements vfs.FS.
func (d *Disposable) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &disposableFile{File: f, of: d, name: name}, nil
}

// Remove implements vfs.FS.
func (d *Disposable) Remove(name string) error {
	if d.inMemory(name) {
		_ = d.FS.Remove(name) // its beginning may be there
		return d.memory.Remove(name)
	}
	return d.FS.Remove(name)
}

// Stat implements vfs.FS.
func (d *Disposable) Stat(name string) (vfs.FileInfo, error) {
	if d.inMemory(name) {
		return d.memory.Stat(name)
	}
	return d.FS.Stat(name)
}

// Rename implements vfs.FS.
func (d *Disposable) Rename(oldname, newname string) error {
	if d.inMemory(oldname) {
		return d.memory.Rename(oldname, newname)
	}
	return d.FS.Rename(oldname, newname)
}

// Link implements vfs.FS.
func (d *Disposable) Link(oldname, newname string) error {
	if d.inMemory(oldname) {
		return d.memory.Link(oldname, newname)
	}
	return d.FS.Link(oldname, newname)
}

// Unwrap returns the wrapped file system.
func (d *Disposable) Unwrap() vfs.FS { return d.FS }

// disposableFile is a file that goes on in memory when the disk refuses a write. It is written by one goroutine.
type disposableFile struct {
	vfs.File
	of       *Disposable
	name     string
	category vfs.DiskWriteCategory
	written  int64
	rest     vfs.File // in memory; nil: the disk has all
}

// Write implements vfs.File.
func (f *disposableFile) Write(b []byte) (int, error) {
	if f.rest != nil {
		return f.rest.Write(b)
	}
	n, err := f.File.Write(b)
	if f.written += int64(n); err == nil {
		return n, nil
	}
	f.of.fail(fmt.Errorf("write %s: %w", f.name, err))
	if failed := f.move(); failed != nil {
		return n, errors.Join(err, failed)
	}
	m, err := f.rest.Write(b[n:])
	return n + m, err
}

// move has the file go on in memory. A table or a file of values is read later, the others are not.
func (f *disposableFile) move() (err error) {
	rest, err := f.of.create(f.name, f.category)
	if err != nil {
		return err
	}
	if strings.HasSuffix(f.name, ".sst") || strings.HasSuffix(f.name, ".blob") {
		begin, err := f.of.FS.Open(f.name)
		if err == nil {
			_, err = io.Copy(rest, io.LimitReader(begin, f.written))
			err = errors.Join(err, begin.Close())
		}
		if err != nil {
			return errors.Join(err, rest.Close())
		}
	}
	f.rest = rest
	return nil
}

// noted returns nil after it has noted an error.
func (f *disposableFile) noted(err error) error {
	if err != nil && f.rest == nil {
		f.of.fail(fmt.Errorf("write %s: %w", f.name, err))
	}
	return nil
}

// Sync implements vfs.File.
func (f *disposableFile) Sync() error { return f.noted(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *disposableFile) SyncData() error { return f.noted(f.File.SyncData()) }

// Preallocate implements vfs.File. The space is only reserved, so an error of the write counts.
func (f *disposableFile) Preallocate(offset, length int64) error {
	_ = f.File.Preallocate(offset, length)
	return nil
}

// Close implements vfs.File.
func (f *disposableFile) Close() error {
	err := f.File.Close()
	if f.rest != nil {
		return f.rest.Close()
	}
	return err
}
