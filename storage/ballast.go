package storage

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballast is a file that only takes space. When a write meets a full disk although
// the reserve was kept, because somebody else took it all at once, the file goes
// and the write is tried again: what was under way can finish.
type ballast struct {
	fs   vfs.FS
	path string

	mu   sync.Mutex
	held bool
}

// take makes the file anew; it returns nil when the space is taken, or can't be on
// this file system.
func (b *ballast) take(size uint64) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held {
		return nil
	}
	f, err := b.fs.Create(b.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("make the ballast: %w", err)
	}
	err = f.Preallocate(0, int64(size))
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("make the ballast: %w", errors.Join(err, b.fs.Remove(b.path)))
	}
	b.held = true
	return nil
}

// drop removes the file; false when there was none.
func (b *ballast) drop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = false
	if err := b.fs.Remove(b.path); err != nil {
		// What is not there can't help. Any other error leaves it to the next attempt.
		return false
	}
	return true
}
