package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/storage"
)

// Drilling says which backup to try out.
type Drilling struct {
	From    *Archive
	Backup  string    // empty: the newest
	At      time.Time // as in Restoring
	Scratch string    // where there is room for the data, made if it is not there; empty: in the directory of backups
	Now     func() time.Time
	// Progress is told of each shard that is done; it may be nil.
	Progress func(done, shards int)

	disk vfs.FS // see openNew
}

// Drilled is what a drill has found.
type Drilled struct {
	*Restored
	Report *storage.Report
}

// Drill restores a backup into a scratch directory, compares the fingerprints of its images with
// those that the manifest has, proves every index, counter and reference, and removes the
// scratch.
func Drill(ctx context.Context, by Drilling) (_ *Drilled, err error) {
	if by.Scratch == "" {
		by.Scratch = by.From.place.Dir()
	} else if err := os.MkdirAll(by.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch directory: %w", err)
	}
	if by.Scratch == "" {
		by.Scratch = os.TempDir()
	}
	scratch, err := makeScratch(by.Scratch, by.Now())
	if err != nil {
		return nil, err
	}
	lock, err := vfs.Default.Lock(filepath.Join(scratch, "lock"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the scratch directory: %w", err), os.RemoveAll(scratch))
	}
	defer func() {
		if failed := errors.Join(lock.Close(), os.RemoveAll(scratch)); failed != nil {
			err = errors.Join(err, fmt.Errorf("remove the scratch directory: %w", failed))
		}
	}()
	data := filepath.Join(scratch, "data")
	restored, err := Restore(ctx, Restoring{From: by.From, Backup: by.Backup, At: by.At, Data: data, Now: by.Now, Proves: true, Progress: by.Progress, disk: by.disk})
	if err != nil {
		return nil, err
	}
	ctx, store, err := openNew(ctx, data, by.disk, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = store.close(err) }()
	report, err := storage.Verify(ctx, store.State(), cluster.Schema(), tracker.Schema())
	if err != nil {
		return nil, err
	}
	return &Drilled{restored, report}, nil
}

const (
	drillPrefix = ".drill-"
	// drillYoung is how long a scratch directory is left alone: a drill may not have locked it yet.
	drillYoung = time.Hour
)

// makeScratch makes a scratch directory, and removes those of drills that were killed. They may have filled the
// disk, so that there is room for another one only then.
func makeScratch(dir string, now time.Time) (string, error) {
	scratch, full := os.MkdirTemp(dir, drillPrefix+"*")
	var made fs.FileInfo
	if full == nil {
		var err error
		if made, err = os.Lstat(scratch); err != nil {
			return "", fmt.Errorf("look at the scratch directory: %w", err)
		}
	}
	if err := removeLeft(dir, made, now); err != nil {
		if full == nil {
			err = errors.Join(err, os.Remove(scratch))
		}
		return "", err
	}
	if full != nil {
		var err error
		if scratch, err = os.MkdirTemp(dir, drillPrefix+"*"); err != nil {
			return "", fmt.Errorf("make the scratch directory: %w", err)
		}
	}
	return scratch, nil
}

// removeLeft removes the scratch directories of drills that were killed. Each may be as large as all
// data. Others may write to the directory that they are in, such as /tmp, and the lock of a directory empties
// the file of its name: it must be no link to a file elsewhere. made is the new scratch directory, whose owner
// they have; nil if it could not be made.
func removeLeft(dir string, made fs.FileInfo, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for what killed drills have left: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), drillPrefix) {
			continue
		}
		at, err := e.Info()
		if err != nil || now.Sub(at.ModTime()) < drillYoung || !isOwn(at, made) || made != nil && e.Name() == made.Name() {
			continue
		}
		left := filepath.Join(dir, e.Name())
		name := filepath.Join(left, "lock")
		if at, err := os.Lstat(name); err == nil && !at.Mode().IsRegular() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // no drill has made it
		}
		lock, err := vfs.Default.Lock(name)
		if err != nil {
			continue // it is in use
		}
		if err := errors.Join(lock.Close(), os.RemoveAll(left)); err != nil {
			return fmt.Errorf("remove what a killed drill has left: %w", err)
		}
	}
	return nil
}
