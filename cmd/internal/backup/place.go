package backup

import (
	"context"
	"io"
	"time"
)

// Place keeps the files of backups under names with slashes. What it does not find is an error
// that wraps fs.ErrNotExist.
type Place interface {
	// List returns the files whose names begin with prefix. A prefix is empty or ends with a
	// slash, and names with a further slash are left out.
	List(ctx context.Context, prefix string) ([]Kept, error)
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Size returns the size of a file in bytes.
	Size(ctx context.Context, name string) (int64, error)
	// Draft begins a file in a folder, which has no name until it is kept. A folder ends with a
	// slash.
	Draft(folder string) (Draft, error)
	Remove(ctx context.Context, name string) error
	// Lock keeps other backups away, where the place can do that, and makes the place ready. The error
	// is errLocked while another backup keeps this one away.
	Lock(ctx context.Context) (unlock func() error, err error)
	// Dir is the directory of the place; empty for a service, which has no lock, and keeps its
	// files from damage by itself.
	Dir() string
	// String is how the operator names the place.
	String() string
}

// Kept is a file in a place, or a part of one that is being written.
type Kept struct {
	Name    string
	Changed time.Time
}

// Draft is a file being written.
type Draft interface {
	io.Writer
	// Room returns an error that wraps errNoRoom if it is known that so many bytes can't be written.
	Room(bytes int64) error
	// Keep makes the file durable under a name, in one step: nobody sees half of it.
	Keep(ctx context.Context, name string) error
	// Discard removes the file unless it was kept.
	Discard() error
}
