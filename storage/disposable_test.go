package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fullDisk returns a file system that has no space left once full is set. A write that is refused then has taken a
// part of its bytes.
func fullDisk(fs vfs.FS, full *atomic.Bool) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpFileWrite, errorfs.OpFilePreallocate, errorfs.OpFileSync, errorfs.OpFileSyncData:
			if full.Load() {
				return syscall.ENOSPC
			}
		}
		return nil
	}))
}

// On a disk that is full every write ends, also those that wait for a flush or a compaction, and what was written
// can be read.
func TestDisposable_EndsWritesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for what, fill := range map[string]func(s *Store, full *atomic.Bool){
		"from the first write on": func(_ *Store, full *atomic.Bool) { full.Store(true) },
		"behind a flush": func(s *Store, full *atomic.Bool) {
			fillRows(t, s, 0)
			must(t, s.FlushState())
			full.Store(true)
		},
	} {
		var full atomic.Bool
		var told []error
		dir := t.TempDir()
		d := NewDisposable(fullDisk(vfs.Default, &full), func(err error) { told = append(told, err) })
		s := ok(Open(Config{Dir: dir, FS: d, CacheBytes: 1 << 20, Logger: quiet}))(t)
		must(t, d.Failed())
		fill(s, &full)
		for round := range uint64(4) {
			fillRows(t, s, round)
		}
		must(t, s.Raft().Set([]byte("key"), make([]byte, 2<<20), pebble.Sync))
		must(t, s.Raft().Flush())
		must(t, s.State().Compact(t.Context(), []byte{0}, []byte{0xff}, false))
		for round := range uint64(4) {
			checkRows(t, s, round)
		}
		must(t, s.Close())
		if failed := d.Failed(); !errors.Is(failed, syscall.ENOSPC) || !strings.Contains(failed.Error(), dir) || len(told) != 1 || !errors.Is(told[0], failed) {
			t.Errorf("%s: it failed with %v, and told %v", what, failed, told)
		}
	}
}

// The beginning of a table is on the disk when the rest is not.
func TestDisposable_JoinsTheParts(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	d := NewDisposable(fullDisk(vfs.NewMem(), &full), func(error) {})
	for _, name := range []string{"first.sst", "second.blob"} {
		full.Store(false)
		f := ok(d.FS.Create(name, flushCategory))(t)
		f = &disposableFile{File: f, of: d, name: name}
		for range 3 {
			if _, err := f.Write([]byte("part,")); err != nil {
				t.Fatal(err)
			}
			full.Store(true)
		}
		must(t, f.Sync())
		must(t, f.Close())
		text := make([]byte, 15)
		f = ok(d.Open(name))(t)
		if _, err := f.ReadAt(text, 0); err != nil || string(text) != "part,part,part," {
			t.Errorf("%s has %q, %v", name, text, err)
		}
		must(t, f.Close())
		link := "link-" + name
		must(t, d.Link(name, link))
		must(t, d.Rename(link, link+".x"))
		if at, err := d.Stat(link + ".x"); err != nil || at.Size() != 15 {
			t.Errorf("the link has %v, %v", at, err)
		}
		must(t, d.Remove(name))
		if _, err := d.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// fillRows writes 2 MB to the state, with values of both kinds. checkRows reads them.
func fillRows(t *testing.T, s *Store, round uint64) {
	t.Helper()
	for n := range uint64(40) {
		batch := s.State().NewBatch()
		for i := range uint64(10) {
			must(t, batch.Set(diskKey(round, n, i), diskValue(n, i), nil))
		}
		must(t, s.CommitState(batch))
		must(t, batch.Close())
	}
}

func checkRows(t *testing.T, s *Store, round uint64) {
	t.Helper()
	for n := range uint64(40) {
		for i := range uint64(10) {
			value, done, err := s.State().Get(diskKey(round, n, i))
			must(t, err)
			if !bytes.Equal(value, diskValue(n, i)) {
				t.Errorf("row %d of batch %d in round %d is of %d bytes", i, n, round, len(value))
			}
			must(t, done.Close())
		}
	}
}

func diskKey(round, n, i uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{0, 1}, round<<32|i<<16|n)
}

func diskValue(n, i uint64) []byte {
	return bytes.Repeat([]byte{byte(n), byte(i)}, 200*int(1+i*i/4))
}
