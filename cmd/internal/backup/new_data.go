package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// newData is the store of a data directory that is removed after an error.
type newData struct {
	*storage.Store
	dir    string
	disk   *storage.Disposable
	cancel context.CancelCauseFunc
}

// openNew opens the store in a directory on a disk; nil means that of the machine. The context ends when the disk
// refuses a write. With making, the data is still to be made (storage.Config.Making).
func openNew(ctx context.Context, dir string, disk vfs.FS, making bool) (context.Context, *newData, error) {
	if disk == nil {
		disk = vfs.Default
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &newData{dir: dir, disk: storage.NewDisposable(disk, cancel), cancel: cancel}
	store, err := storage.Open(storage.Config{Dir: dir, FS: d.disk, Making: making})
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	d.Store = store
	return ctx, d, nil
}

// made marks the data as whole. If the disk has refused a write, the rest of the data is in memory only.
func (d *newData) made() error {
	if err := d.disk.Failed(); err != nil {
		return err
	}
	return d.Made()
}

// close closes the store after a use that ended with err. If the disk has refused a write, that is the error: all
// others may follow from it.
func (d *newData) close(err error) error {
	err = errors.Join(err, d.Close())
	d.cancel(nil)
	if failed := d.disk.Failed(); failed != nil {
		return fmt.Errorf("the data in %s could not be written: %w", d.dir, failed)
	}
	return err
}
