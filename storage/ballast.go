package storage

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballast is a file that only occupies space. When a write meets a full disk although the reserve
// was kept, because another program took the space at once, the file is deleted and the write is
// tried again, so that work under way can finish.
type ballast struct {
	fs   vfs.FS
	path string

	mu   sync.Mutex
	held bool
}

// create creates the file again. It returns nil if the space is occupied, or if the file system does
// not support it.
func (b *ballast) create(size uint64) (err error) {
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
		// A missing file can't help. After any other error the next attempt tries again.
		return false
	}
	return true
}
