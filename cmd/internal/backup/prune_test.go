package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
)

// unused returns the files of shards that no backup in a directory has.
func unused(t *testing.T, dir string) (files []string) {
	t.Helper()
	named := map[string]bool{}
	names, err := plain(dir).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		m, err := plain(dir).Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Files {
			named[filepath.Base(shardFile(dir, &m.Files[i]))] = true
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "shards"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".shard") && !named[e.Name()] {
			files = append(files, e.Name())
		}
	}
	return files
}

// A backup that fails, as on a full disk, leaves no images that take the room of the next one.
func TestTake_FailedLeavesNoImages(t *testing.T) {
	t.Parallel()
	s := startService(t, 3)
	dir := filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	s.write("A change")
	ctx, cancel := context.WithCancelCause(t.Context())
	full, kept := errors.New("the disk is full"), 0
	_, _, err := backup.Take(ctx, backup.Taking{Client: client(t, s.url), To: plain(dir), Now: time.Now, Progress: func(p backup.Progress) {
		if p.Done == 3 { // the directory is being copied
			kept += len(unused(t, dir))
			cancel(full)
		}
	}})
	if !errors.Is(err, full) || kept == 0 {
		t.Fatalf("%v, with %d images", err, kept)
	}
	if left := unused(t, dir); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// A backup that was killed can't tidy up. The next one does, before it needs the room itself, unless a
// manifest that can't be read may have the files.
func TestTake_RemovesTheImagesOfAKilledOne(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	dir := filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	left := filepath.Join(dir, "shards", strings.Repeat("0", 64)+".shard")
	for _, c := range []struct {
		manifest string // that can't be read
		stays    bool
	}{{"", false}, {"backup-20260101T000000.000Z.json", true}} {
		err := os.WriteFile(left, []byte("left"), 0o600)
		if c.manifest != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, c.manifest), []byte("damaged"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		begun := false
		_, _, err = backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(dir), Now: time.Now, Progress: func(backup.Progress) {
			if begun {
				return
			}
			begun = true // nothing was copied yet
			if _, err := os.Stat(left); (err == nil) != c.stays {
				t.Errorf("with a manifest %q: %v", c.manifest, err)
			}
		}})
		if err != nil || !begun {
			t.Fatal(err)
		}
	}
}
