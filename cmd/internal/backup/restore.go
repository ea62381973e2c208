package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/internal/durable"
	"switchyard/storage"
)

// Restoring says what to restore, and where.
type Restoring struct {
	From   *Archive
	Backup string // name of the backup; empty: the newest
	// At is the moment whose state is restored: that of the newest backup before it, or of Backup,
	// and of the archived logs up to it. Zero: the state of the backup.
	At   time.Time
	Data string // data directory of the new node; it must be empty
	Node string // name of the new node; empty: the default
	Now  func() time.Time
	// Proves compares the fingerprint of each shard's rows with the manifest's.
	Proves bool
	// Progress is told of each shard that is done; it may be nil.
	Progress func(done, shards int)

	disk vfs.FS // see openNew
}

// Restored is what was restored.
type Restored struct {
	Manifest *Manifest
	Cluster  string // id of the new cluster
	Entries  int64  // log entries that were applied behind the images
	// Late are entries that were not applied, although the clock that appended them was not at the
	// moment yet: an entry before them is of a later time, so clocks differ. Those in the segments
	// whose times are about the moment are counted.
	Late int64
	// Later are the names of backups that were passed over, since they are of an older state although
	// their times are later: a clock was wrong.
	Later []string
	// Damaged says which segments are damaged. Their entries came from others, or are not needed.
	Damaged []error
	tracker.RestoreReport
}

// Restore makes the data directory of the only node of a new cluster, with the state of a
// backup. After an error the directory is empty again.
func Restore(ctx context.Context, by Restoring) (_ *Restored, err error) {
	m, logs, later, err := by.choose(ctx)
	if err != nil {
		return nil, err
	}
	if err := by.From.allPresent(ctx, m.Files); err != nil {
		return nil, err
	}
	made, err := emptyDir(by.Data)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(by.disk, by.Data, made))
		}
	}()
	ctx, data, err := openNew(ctx, by.Data, by.disk, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = data.close(err) }()
	store := data.Store
	f, err := cluster.NewCreation(store, by.Node, m.Shards, m.format())
	if err != nil {
		return nil, err
	}
	r := &Restored{Manifest: m, Later: later}
	for i := range m.Files {
		is, err := restoreShard(ctx, store, f, &by, m, &m.Files[i], logs)
		if err != nil {
			return nil, fmt.Errorf("restore shard %d: %w", i, err)
		}
		r.Entries, r.Late = r.Entries+is.entries, r.Late+is.late
		if by.Progress != nil {
			by.Progress(i+1, len(m.Files))
		}
	}
	if logs != nil {
		r.Damaged = logs.damaged
	}
	if r.RestoreReport, err = agree(store, m.Shards, by.Now(), by.agreement()); err != nil {
		return nil, err
	}
	if r.Cluster, err = f.Finish(); err != nil {
		return nil, err
	}
	return r, data.made()
}

// restoreShard puts the rows of a shard in place, and applies the entries of its log up to the
// moment; logs is nil without one.
func restoreShard(ctx context.Context, store *storage.Store, f *cluster.Creation, by *Restoring, m *Manifest, file *File, logs *logs) (replayed, error) {
	is := replayed{index: file.Index, epoch: file.Epoch}
	err := restoreImage(ctx, store, by, file)
	if err == nil && logs != nil {
		var log *logReader
		if log, err = logs.open(ctx, m, file, by.At); err == nil {
			is, err = by.replay(ctx, f, log)
		}
	}
	if err == nil {
		err = f.TakeOver(storage.Shard(file.Shard), is.index, is.epoch)
	}
	return is, err
}

// restoreImage puts the rows of a shard in place, once all of its file is proved.
func restoreImage(ctx context.Context, store *storage.Store, by *Restoring, file *File) (err error) {
	shard := storage.Shard(file.Shard)
	rows, err := store.Import(shard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := by.From.copy(ctx, file, rows); err != nil {
		return err
	}
	if err := rows.Finish(ctx); err != nil {
		return err
	}
	if err := rows.Ingest(ctx); err != nil {
		return err
	}
	if by.Proves {
		print, err := cluster.Fingerprint(ctx, store, shard)
		if err != nil {
			return err
		}
		if print.String() != file.Fingerprint || print.Rows != file.Rows {
			return fmt.Errorf("its fingerprint is %s, and the manifest has %s", print, file.Fingerprint)
		}
	}
	return nil
}

// agreement is tracker.Restored, or Recovered.
type agreement func(w *storage.Walk, shards int, run func(op *tracker.Op, in any) error) (tracker.RestoreReport, error)

// agree makes the directory agree with the shards, which are of other moments.
func agree(store *storage.Store, shards int, now time.Time, by agreement) (report tracker.RestoreReport, err error) {
	state := store.State()
	buffer := tracker.NewWriteBuffer(storage.NewTx(state, storage.DirectoryShard, storage.DirectoryID), rand.Reader)
	defer func() { err = errors.Join(err, buffer.Close()) }()
	commit := func() error {
		repr, err := buffer.Seal()
		if err != nil || repr == nil {
			return err
		}
		batch := state.NewBatch()
		if err = batch.SetRepr(bytes.Clone(repr)); err == nil {
			err = store.CommitState(batch)
		}
		if err = errors.Join(err, batch.Close()); err != nil {
			return fmt.Errorf("change the directory: %w", err)
		}
		buffer.Committed()
		return nil
	}
	return by(storage.NewWalk(state), shards, tracker.NewRestore(buffer, now, commit))
}

// spare is what a new file system may have in its root.
const spare = "lost+found"

// emptyDir makes a directory, or looks that there is nothing in it. made is set if it was not
// there.
func emptyDir(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err := durable.MakeDir(dir); err != nil {
			return false, fmt.Errorf("make the data directory: %w", err)
		}
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != spare {
			return false, fmt.Errorf("%s is not empty: a backup is restored into an empty directory only", dir)
		}
	}
	return false, nil
}

// undo removes what a restore that failed has made on a disk; nil means that of the machine.
func undo(disk vfs.FS, dir string, all bool) error {
	if disk == nil {
		disk = vfs.Default
	}
	err := storage.Unmake(disk, dir, spare)
	if err == nil && all {
		err = disk.RemoveAll(dir)
	}
	return err
}
