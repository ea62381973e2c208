package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ErrInUse is wrapped by the error of Open if another process has the directory open.
var ErrInUse = errors.New("another process uses the directory")

// errFull is wrapped by the error of Open if the disk has no room for a node's start.
var errFull = errors.New("is full")

// OpenStopped opens the data of a node that does not run, for a command that looks at it. Opening writes to the
// directory: Pebble replays its logs.
func OpenStopped(dir string) (*Store, error) {
	s, err := Open(Config{Dir: dir})
	return s, adviseStopped(err)
}

// adviseStopped adds to an error of Open what to do about the directory.
func adviseStopped(err error) error {
	switch {
	case errors.Is(err, ErrInUse):
		return fmt.Errorf("%w (is a node running on it? stop it first)", err)
	case errors.Is(err, errFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (opening the data writes to it: copy the directory to a disk where this command may write, and give that copy)", err)
	}
	return err
}

// openError is the error of Open for one of the instances.
func openError(operation string, err error) error {
	if errors.Is(err, syscall.EAGAIN) { // the lock is held, on systems with fcntl
		err = ErrInUse
	}
	return fmt.Errorf("%s: %w", operation, err)
}
