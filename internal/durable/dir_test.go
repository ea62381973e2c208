package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keep writes a file and syncs it, but not its directory.
func keep(t *testing.T, on vfs.FS, name string) {
	t.Helper()
	f, err := on.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("kept"))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// crashed reports whether a file is there after a power failure.
func crashed(t *testing.T, on *vfs.MemFS, name string) bool {
	t.Helper()
	_, err := on.CrashClone(vfs.CrashCloneCfg{}).Stat(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestMakeDir_SurvivesAPowerFailure(t *testing.T) {
	t.Parallel()
	on := vfs.NewCrashableMem()
	for _, dir := range []string{"/all/are/new", "/all/are/there", "/all/are/there", "/all", "/one"} {
		if err := makeDir(on, dir); err != nil {
			t.Fatal(err)
		}
		file := on.PathJoin(dir, "file")
		keep(t, on, file)
		if err := syncDir(on, dir); err != nil {
			t.Fatal(err)
		}
		if !crashed(t, on, file) {
			t.Errorf("%s is gone", file)
		}
	}
	if err := on.MkdirAll("/lost", dirMode); err != nil {
		t.Fatal(err)
	}
	if crashed(t, on, "/lost") {
		t.Error("the file system keeps what was not synced: this test proves nothing")
	}
}

func TestSyncDir_KeepsNames(t *testing.T) {
	t.Parallel()
	on := vfs.NewCrashableMem()
	keep(t, on, "/part")
	if err := on.Rename("/part", "/whole"); err != nil {
		t.Fatal(err)
	}
	if err := syncDir(on, "/"); err != nil {
		t.Fatal(err)
	}
	if !crashed(t, on, "/whole") || crashed(t, on, "/part") {
		t.Error("the new name is gone, or the old one is back")
	}
}

func TestMakeDir_OnDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := MakeDir(dir + "/"); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := os.Stat(dir); err != nil || !at.IsDir() || at.Mode().Perm() != dirMode {
		t.Errorf("%v, %v", at, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []string{file, filepath.Join(file, "below")} {
		if err := MakeDir(taken); err == nil {
			t.Errorf("%s was made", taken)
		}
	}
	if err := SyncDir(filepath.Join(dir, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
