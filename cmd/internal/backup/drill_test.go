package backup_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cmd/internal/backup"
)

// The scratch directory may be one that is not there, such as below an empty volume.
func TestDrill_MakesItsScratchDirectory(t *testing.T) {
	t.Parallel()
	s, dir := startService(t, 1), filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	scratch := filepath.Join(t.TempDir(), "scratch", "drill")
	d, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Scratch: scratch, Now: time.Now})
	if err != nil || !d.Report.Clean() {
		t.Fatalf("%v, %+v", err, d)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v was left, %v", left, err)
	}
}

// The scratch of a drill that was killed is removed by a later one, but not that of one that runs.
func TestDrill_RemovesWhatKilledDrillsLeft(t *testing.T) {
	t.Parallel()
	s, dir, scratch := startService(t, 1), filepath.Join(t.TempDir(), "backups"), t.TempDir()
	s.take(dir, 0)
	for _, name := range []string{".drill-left", ".drill-runs", ".drill-begins", "other"} {
		err := os.MkdirAll(filepath.Join(scratch, name, "data"), 0o700)
		if err == nil && name == ".drill-runs" {
			var lock io.Closer
			if lock, err = vfs.Default.Lock(filepath.Join(scratch, name, "lock")); err == nil {
				t.Cleanup(func() { _ = lock.Close() })
			}
		}
		if old := time.Now().Add(-2 * time.Hour); err == nil && name != ".drill-begins" {
			err = os.Chtimes(filepath.Join(scratch, name), old, old)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Scratch: scratch, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(scratch)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || !slices.Equal(left, []string{".drill-begins", ".drill-runs", "other"}) {
		t.Errorf("%q are left, %v", left, err)
	}
}

// A drill takes no directory for one that a drill has left if another user has made it, or if its lock is a link:
// the lock would empty the file that the link leads to.
func TestDrill_EmptiesNoFileOfOthers(t *testing.T) {
	t.Parallel()
	s, dir, scratch := startService(t, 1), filepath.Join(t.TempDir(), "backups"), t.TempDir()
	s.take(dir, 0)
	file := filepath.Join(t.TempDir(), "theirs")
	err := os.WriteFile(file, []byte("content"), 0o600)
	lures := []string{".drill-link", ".drill-other"}
	for _, name := range lures {
		lure, old := filepath.Join(scratch, name), time.Now().Add(-2*time.Hour)
		err = errors.Join(err, os.Mkdir(lure, 0o700))
		if name == ".drill-link" {
			err = errors.Join(err, os.Symlink(file, filepath.Join(lure, "lock")))
		} else if err == nil && os.Lchown(lure, 1, 1) != nil {
			t.Log("only root can make a directory of another user")
			err, lures = os.Remove(lure), lures[:1]
			continue
		}
		err = errors.Join(err, os.Chtimes(lure, old, old))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Scratch: scratch, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "content" {
		t.Errorf("the file has %q, %v", text, err)
	}
	for _, name := range lures {
		if _, err := os.Stat(filepath.Join(scratch, name)); err != nil {
			t.Error(err)
		}
	}
}
