// Package durable makes the names of files and directories last. A file that was synced can be gone after a power
// failure, with its content, if the directory that has its name was not synced, and so can all of a directory whose
// name is new. Files of Pebble are no concern of this package: Pebble syncs their directories.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirMode keeps other users out: what this program writes has secrets in it.
const dirMode = 0o700

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error { return syncDir(vfs.Default, dir) }

// MakeDir makes a directory for this user alone, with those above it that are not there, and makes the names of
// all that it has made durable. A directory that is there is left as it is.
func MakeDir(dir string) error { return makeDir(vfs.Default, dir) }

func syncDir(on vfs.FS, dir string) error {
	d, err := on.OpenDir(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", dir, err)
	}
	return nil
}

func makeDir(on vfs.FS, dir string) error {
	var parents []string // of the directories that are not there, the innermost first
	for at := on.PathJoin(dir); ; at = parents[len(parents)-1] {
		_, err := on.Stat(at)
		if err == nil || on.PathDir(at) == at {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, on.PathDir(at))
	}
	if err := on.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, parent := range slices.Backward(parents) {
		if err := syncDir(on, parent); err != nil {
			return err
		}
	}
	return nil
}
