package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// presence notices that a store's directory was removed, or that another one is in its
// place, such as the empty one below a file system that was unmounted. Writes to files
// that are open already go on succeeding then, so no error tells of it.
type presence struct {
	fs    vfs.FS
	marks []presenceMark
}

// presenceMark is a directory as it was when the store was opened.
type presenceMark struct {
	path string
	info os.FileInfo
}

// notice remembers the directories of an open store.
func (p *presence) notice(dir string) error {
	for _, path := range []string{dir, filepath.Join(dir, raftDir), filepath.Join(dir, stateDir)} {
		info, err := p.stat(path)
		if err != nil {
			return fmt.Errorf("look at the data directory: %w", err)
		}
		p.marks = append(p.marks, presenceMark{path, info})
	}
	return nil
}

// stat looks at a path. File systems other than the machine's have no identities to
// compare.
func (p *presence) stat(path string) (os.FileInfo, error) {
	if p.fs == vfs.Default {
		return os.Stat(path)
	}
	return p.fs.Stat(path)
}

// lost returns an error if the directory is gone or replaced; nil if it is unchanged or can't be
// checked now.
func (p *presence) lost() error {
	for _, m := range p.marks {
		info, err := p.stat(m.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("the data directory is gone: %s was removed or unmounted while the node ran; changes since then may be lost on this node", m.path)
		case err == nil && p.fs == vfs.Default && !os.SameFile(info, m.info):
			return fmt.Errorf("the data directory is gone: %s is another one than the node was started on; changes since then may be lost on this node", m.path)
		}
	}
	return nil
}
