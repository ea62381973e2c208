package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestPresence_LostDirectoryEndsChanges(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"removed":          os.RemoveAll,
		"emptied":          func(dir string) error { return os.RemoveAll(filepath.Join(dir, "state")) },
		"moved away":       func(dir string) error { return os.Rename(dir, dir+".old") },
		"another one laid": swap,
	} {
		dir := filepath.Join(t.TempDir(), "data")
		for _, path := range []string{"raft", "state"} {
			if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := newSpace(vfs.Default, dir, quiet)
		told := 0
		s.OnLost(func(error) { told++ })
		if err := s.presence.notice(dir); err != nil {
			t.Fatal(err)
		}
		if s.check(); s.Lost() != nil {
			t.Errorf("%s: lost before it was: %v", name, s.Lost())
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		s.check()
		s.check()
		if err := s.Lost(); err == nil || !strings.Contains(err.Error(), "the data directory is gone") || !s.Full() || s.Shortage() != Spent || told != 1 {
			t.Errorf("%s: %v, shortage %d, told %d times", name, err, s.Shortage(), told)
		}
	}
}

// swap puts a directory of the same shape in the place of another.
func swap(dir string) error {
	if err := os.Rename(dir, dir+".old"); err != nil {
		return err
	}
	for _, path := range []string{"raft", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			return err
		}
	}
	return nil
}
