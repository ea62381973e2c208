package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/internal/durable"
)

// dirPlace is a directory.
type dirPlace string

// InDir returns the place that is a directory.
func InDir(dir string) Place { return dirPlace(dir) }

const (
	// shardDir is the folder of the shards' images, and of drafts of manifests.
	shardDir   = "shards/"
	partPrefix = ".part-"
)

func (d dirPlace) String() string { return string(d) }

func (d dirPlace) Dir() string { return string(d) }

func (d dirPlace) at(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d dirPlace) List(_ context.Context, prefix string) ([]Kept, error) {
	entries, err := os.ReadDir(d.at(prefix))
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	var all []Kept
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		at, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, or given another name, meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list the files: %w", err)
		}
		all = append(all, Kept{Name: prefix + e.Name(), Changed: at.ModTime()})
	}
	return all, nil
}

func (d dirPlace) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.at(name))
}

func (d dirPlace) Size(_ context.Context, name string) (int64, error) {
	at, err := os.Stat(d.at(name))
	if err == nil && !at.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return 0, err
	}
	return at.Size(), nil
}

func (d dirPlace) Remove(_ context.Context, name string) error { return os.Remove(d.at(name)) }

// errLocked is the error while another backup writes to a place.
var errLocked = errors.New("another backup writes")

// Lock implements Place. It removes what a backup that was killed has left.
func (d dirPlace) Lock(ctx context.Context) (unlock func() error, err error) {
	if err := durable.MakeDir(d.at(shardDir)); err != nil {
		return nil, fmt.Errorf("make the directory of backups: %w", err)
	}
	lock, err := vfs.Default.Lock(d.at("lock"))
	if _, file := errors.AsType[*fs.PathError](err); file { // the file can't be opened
		return nil, fmt.Errorf("lock the directory of backups: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", errLocked, d, err)
	}
	for _, folder := range []string{"", shardDir} {
		left, err := d.List(ctx, folder)
		for _, file := range left {
			if err == nil && strings.HasPrefix(path.Base(file.Name), partPrefix) {
				err = d.Remove(ctx, file.Name)
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("remove parts of files: %w", err), lock.Close())
		}
	}
	return lock.Close, nil
}

func (d dirPlace) Draft(folder string) (Draft, error) {
	if err := durable.MakeDir(d.at(folder)); err != nil {
		return nil, fmt.Errorf("make the folder of a file: %w", err)
	}
	made, err := os.CreateTemp(d.at(folder), partPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	draft := &dirDraft{name: made.Name(), to: d}
	file, err := vfs.Default.OpenReadWrite(draft.name, vfs.WriteCategoryUnspecified)
	if err = errors.Join(err, made.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("make a file: %w", err), os.Remove(draft.name))
	}
	draft.File = vfs.NewSyncingFile(file, vfs.SyncingFileOptions{BytesPerSync: bytesPerSync})
	return draft, nil
}

// bytesPerSync is how much of a draft is written before the system is told to bring it to the disk.
// All of it at once would keep others from the disk for a second, such as a node on the same machine,
// which has its log written for every request.
const bytesPerSync = 1 << 20

// dirDraft is a file with a name that begins with partPrefix.
type dirDraft struct {
	vfs.File
	name string
	to   dirPlace
	done bool // closed
}

// Room implements Draft: nothing else is known to need the disk of the backups.
func (d *dirDraft) Room(int64) error { return nil }

func (d *dirDraft) Keep(_ context.Context, name string) error {
	d.done = true
	err := errors.Join(d.Sync(), d.Close())
	if err == nil {
		err = os.Rename(d.name, d.to.at(name))
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(d.to.at(name)))
	} else {
		err = errors.Join(err, os.Remove(d.name))
	}
	if err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	return nil
}

func (d *dirDraft) Discard() error {
	if d.done {
		return nil
	}
	d.done = true
	if err := errors.Join(d.Close(), os.Remove(d.name)); err != nil {
		return fmt.Errorf("remove a part of a file: %w", err)
	}
	return nil
}
