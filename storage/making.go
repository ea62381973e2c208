package storage

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// makingFile is in a data directory while its data is made from a backup or from what is left of other nodes. Until
// all of it is there, the directory can look like that of a new node, or of one that holds other shards.
const makingFile = "being-made"

// beginMaking marks a directory as one whose data is being made. The mark is durable before anything else is there.
func beginMaking(on vfs.FS, dir string) error {
	err := on.MkdirAll(dir, 0o700)
	if err == nil {
		var f vfs.File
		if f, err = on.Create(on.PathJoin(dir, makingFile), vfs.WriteCategoryUnspecified); err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
	}
	if err == nil {
		err = syncDir(on, dir)
	}
	if err != nil {
		return fmt.Errorf("mark %s as being made: %w", dir, err)
	}
	return nil
}

// checkMade returns an error if the data in a directory was never complete.
func checkMade(on vfs.FS, dir string) error {
	_, err := on.Stat(on.PathJoin(dir, makingFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the data directory: %w", err)
	}
	return fmt.Errorf("%s is not complete: switchyard restore or recover is making it, or was stopped before it was done. If neither runs, empty the directory and run the command again", dir)
}

// Made ends what Config.Making began: the directory may be opened as that of a node. All data must be durable.
func (s *Store) Made() error {
	err := s.making.Remove(s.making.PathJoin(s.space.dir, makingFile))
	if err == nil {
		err = syncDir(s.making, s.space.dir)
	}
	if err != nil {
		return fmt.Errorf("mark %s as made: %w", s.space.dir, err)
	}
	return nil
}

// Unmake removes what is in a directory whose data could not be made, except for one name. The mark goes last, once
// it is durable that the rest is gone: until then the directory is refused. If the error came after Made, there is no
// mark any more. A disk that can't take it again keeps nothing from being removed.
func Unmake(on vfs.FS, dir, except string) error {
	if _, err := on.Stat(on.PathJoin(dir, makingFile)); errors.Is(err, fs.ErrNotExist) {
		_ = beginMaking(on, dir)
	}
	names, err := on.List(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		if name != except && name != makingFile {
			err = errors.Join(err, on.RemoveAll(on.PathJoin(dir, name)))
		}
	}
	if err == nil {
		err = syncDir(on, dir)
	}
	if err == nil {
		err = on.RemoveAll(on.PathJoin(dir, makingFile))
	}
	if err != nil {
		return fmt.Errorf("empty %s: %w", dir, err)
	}
	return nil
}

func syncDir(on vfs.FS, dir string) error {
	d, err := on.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
