package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
		by.Scratch = by.From.place.Dir() // or the directory for temporary files
	} else if err := os.MkdirAll(by.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch directory: %w", err)
	}
	scratch, err := os.MkdirTemp(by.Scratch, ".drill-*")
	if err != nil {
		return nil, fmt.Errorf("make the scratch directory: %w", err)
	}
	defer func() {
		if failed := os.RemoveAll(scratch); failed != nil {
			err = errors.Join(err, fmt.Errorf("remove the scratch directory: %w", failed))
		}
	}()
	data := filepath.Join(scratch, "data")
	restored, err := Restore(ctx, Restoring{From: by.From, Backup: by.Backup, At: by.At, Data: data, Now: by.Now, Proves: true, Progress: by.Progress})
	if err != nil {
		return nil, err
	}
	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	report, err := storage.Verify(ctx, store.State(), cluster.Schema(), tracker.Schema())
	if err != nil {
		return nil, err
	}
	return &Drilled{restored, report}, nil
}
