package storage

import (
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockless is a file system whose locks fail.
type lockless struct {
	vfs.FS
	err error
}

func (f lockless) Lock(name string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: name, Err: f.err}
}

// The advice about a directory that can't be opened is that of its cause.
func TestOpen_SaysWhyNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err          error
		says, advice string
	}{
		"in use":        {syscall.EAGAIN, "another process uses the directory", "is a node running on it?"},
		"read-only":     {syscall.EROFS, "read-only", "copy the directory"},
		"not permitted": {syscall.EACCES, "permission denied", "copy the directory"},
		"full":          {syscall.ENOSPC, "no space", "copy the directory"},
		"broken":        {syscall.EIO, "input/output error", ""},
	} {
		_, err := Open(Config{Dir: "data", FS: lockless{vfs.NewMem(), c.err}, Logger: quiet})
		if err == nil {
			t.Fatalf("%s: it was opened", name)
		}
		if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "temporarily unavailable") || !strings.Contains(text, " in data") {
			t.Errorf("%s: %v", name, err)
		}
		advice, _ := strings.CutPrefix(adviseStopped(err).Error(), err.Error())
		if !strings.Contains(advice, c.advice) || c.advice == "" && advice != "" {
			t.Errorf("%s: the advice is %q", name, advice)
		}
	}
}
