package backup_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
	"switchyard/storage"
)

// withoutRoom returns the machine's disk without space for the files of the state, or for those of the log.
func withoutRoom(instance string) vfs.FS {
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && filepath.Base(filepath.Dir(op.Path)) == instance && (strings.HasSuffix(op.Path, ".sst") || strings.HasSuffix(op.Path, ".log")) {
			return syscall.ENOSPC
		}
		return nil
	}))
}

// A disk that gets full ends what makes data, instead of being tried for ever, and nothing is left there.
func TestNewData_EndsOnAFullDisk(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	s, stop := run(t, node.Config{Data: data, Shards: 4, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.found().take(dir, 0)
	stop()
	for what, do := range map[string]func(ctx context.Context, to string, disk vfs.FS) error{
		"restore": func(ctx context.Context, to string, disk vfs.FS) error {
			_, err := backup.Restore(ctx, backup.Restoring{From: plain(dir), Data: to, Now: time.Now}.On(disk))
			return err
		},
		"drill": func(ctx context.Context, to string, disk vfs.FS) error {
			_, err := backup.Drill(ctx, backup.Drilling{From: plain(dir), Scratch: to, Now: time.Now}.On(disk))
			return err
		},
		"recover": func(ctx context.Context, to string, disk vfs.FS) error {
			_, err := backup.Recover(ctx, backup.Recovering{From: []string{data}, AcceptLoss: true, Data: to, Now: time.Now}.On(disk))
			return err
		},
	} {
		for _, instance := range []string{"state", "raft"} {
			to := t.TempDir()
			if err := do(t.Context(), to, withoutRoom(instance)); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "could not be written") {
				t.Errorf("%s without room in %s: %v", what, instance, err)
			}
			if left, err := os.ReadDir(to); len(left) > 0 || err != nil {
				t.Errorf("%s without room in %s left %v, %v", what, instance, left, err)
			}
		}
		// Ctrl-C while the disk is full is no other case.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := do(ctx, t.TempDir(), withoutRoom("state")); err == nil {
			t.Errorf("%s did not fail", what)
		}
	}
}

// A kill while a restore that failed removes what it has made leaves the mark, by which the rest is refused.
func TestNewData_RemovesTheMarkLast(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	s, stop := run(t, node.Config{Data: data, Shards: 4, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.found().take(dir, 0)
	stop()
	for _, kept := range []string{"raft", "state"} {
		disk := errorfs.Wrap(withoutRoom("state"), errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch base := filepath.Base(op.Path); {
			case op.Kind == errorfs.OpRemoveAll && base == kept:
				return syscall.EIO
			case (op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpRemoveAll) && base == "being-made":
				t.Errorf("the mark is removed before %s", kept)
			}
			return nil
		}))
		to := t.TempDir()
		if _, err := backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Data: to, Now: time.Now}.On(disk)); !errors.Is(err, syscall.EIO) {
			t.Errorf("the restore ended with %v", err)
		}
		store, err := storage.Open(storage.Config{Dir: to, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err == nil {
			err = store.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is not complete") {
			t.Errorf("what is left with %s is opened: %v", kept, err)
		}
		if err := storage.Unmake(vfs.Default, to, ""); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(to); len(left) > 0 || err != nil {
			t.Errorf("then it has %v, %v", left, err)
		}
	}
}
