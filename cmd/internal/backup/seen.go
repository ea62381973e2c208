package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"switchyard/internal/durable"
)

// seen remembers in which place this node has seen backups last, also over restarts. An empty place under that
// name is not the one that held them: its file system is not mounted, for example, and a backup would go to the
// node's own disk.
type seen struct {
	file  string // in the data directory; empty: nothing is kept over a restart
	place string // the last one; empty: none yet
	read  bool   // whether the file was read
}

// errEmptied ends what would write to a place that has lost all its backups.
var errEmptied = errors.New("this node has seen backups there, and now there is none: the directory or bucket was emptied, or a file system is not mounted. Nothing is written there until there is a backup: if it is empty on purpose, take one with `switchyard backup`")

// check returns errEmptied if there are no backups in a place where this node has seen some, and remembers
// a place that has some. failed says why it could not be written down: then it is known until the node stops.
func (s *seen) check(place string, backups int) (failed, err error) {
	if !s.read && s.file != "" {
		text, err := os.ReadFile(s.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read in which place backups were seen: %w", err)
		}
		s.place, s.read = string(text), true
	}
	switch {
	case backups == 0 && s.place == place:
		return nil, errEmptied
	case backups == 0 || s.place == place:
		return nil, nil
	}
	s.place = place
	if s.file == "" {
		return nil, nil
	}
	if err := replace(s.file, place); err != nil {
		return fmt.Errorf("note that backups were seen: %w", err), nil
	}
	return nil, nil
}

// seenAs is the name of an archive's place for seen. A directory has one name, whether the operator writes it from
// the root or not. A symbolic link has its own name, and not that of the directory to which it leads: where that is
// on a file system that is not mounted, or the link leads to another, empty directory, the backups are missing there
// and nothing is to be written.
func seenAs(a *Archive) string {
	if dir := a.place.Dir(); dir != "" {
		if whole, err := filepath.Abs(dir); err == nil {
			return whole
		}
	}
	return a.String()
}

// replace replaces a small file.
func replace(file, text string) error {
	next := file + partSuffix
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return durable.SyncDir(filepath.Dir(file))
}

const partSuffix = ".part"
