package storage

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countedWrites counts the writes of a file.
type countedWrites struct {
	vfs.File
	writes *int
}

func (f countedWrites) Write(b []byte) (int, error) {
	*f.writes++
	return f.File.Write(b)
}

func TestBufferedFile_IsOnDiskAfterASync(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	for name, sync := range map[string]func(vfs.File) error{"sync": vfs.File.Sync, "data": vfs.File.SyncData} {
		writes := 0
		f := newBufferedFile(countedWrites{ok(fs.Create(name, vfs.WriteCategoryUnspecified))(t), &writes})
		var want []byte
		for i := range 100 {
			part := bytes.Repeat([]byte{byte(i)}, 4096)
			want = append(want, part...)
			ok(f.Write(part))(t)
		}
		must(t, sync(f))
		if most := len(want)/tableWrite + 1; writes > most {
			t.Errorf("%d bytes were written in %d writes, want %d at most", len(want), writes, most)
		}
		dir := ok(fs.OpenDir(""))(t)
		must(t, dir.Sync())
		must(t, dir.Close())
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		kept := ok(after.Open(name))(t)
		if got := ok(io.ReadAll(kept))(t); !bytes.Equal(got, want) {
			t.Errorf("%s: %d of %d bytes are on disk", name, len(got), len(want))
		}
		must(t, kept.Close())
		must(t, f.Close())
	}
}

// Writes to a file of values reach the file before its sync, so that they fail on a full disk, and not the sync.
func TestPacer_WritesFilesOfValuesAtOnce(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	p := &pacer{FS: fs, name: stateDir}
	for name, want := range map[string]int64{"000001.blob": 4096, "000002.sst": 0} {
		f := ok(p.Create(name, vfs.WriteCategoryUnspecified))(t)
		ok(f.Write(make([]byte, 4096)))(t)
		if info := ok(fs.Stat(name))(t); info.Size() != want {
			t.Errorf("%s has %d bytes before its sync, want %d", name, info.Size(), want)
		}
		must(t, f.Close())
	}
}
