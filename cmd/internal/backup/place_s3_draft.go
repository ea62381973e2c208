package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Draft implements Place. The name of a file follows from all of its content, so the file is
// on the disk before it is sent.
func (p *s3Place) Draft(string) (Draft, error) {
	file, err := os.CreateTemp(p.spool, "switchyard-backup-*")
	if err != nil {
		return nil, fmt.Errorf("make a file to send: %w", err)
	}
	// Without its name nothing is left of it when the process dies. Not every system allows it.
	unnamed := os.Remove(file.Name()) == nil
	return &s3Draft{file: file, to: p, unnamed: unnamed}, nil
}

// errNoRoom is the error of a file that the disk has no room for.
var errNoRoom = errors.New("there is no room")

// spoolLook is how many bytes of a file are written between two looks at the free space.
const spoolLook = 64 << 20

// room returns errNoRoom if the disk of the spool has no room for so many bytes more. What can't be
// measured is not refused.
func (p *s3Place) room(bytes int64) error {
	usage, err := p.usage(p.spool)
	if err != nil {
		return nil
	}
	keep := p.keepFree(usage.TotalBytes)
	if spare := usage.AvailBytes - min(usage.AvailBytes, keep); uint64(bytes) > spare {
		return fmt.Errorf("%w in %s for a file that is to be sent: it takes %d MiB more, and of %d MiB that are free %d stay free", errNoRoom, p.spool, bytes>>20, usage.AvailBytes>>20, keep>>20)
	}
	return nil
}

// s3Draft is a file that will be sent.
type s3Draft struct {
	file    *os.File
	to      *s3Place
	unnamed bool
	done    bool  // closed
	size    int64 // bytes written
}

// Room implements Draft.
func (d *s3Draft) Room(bytes int64) error { return d.to.room(bytes) }

// Write implements io.Writer. The disk may be filled by others meanwhile.
func (d *s3Draft) Write(b []byte) (int, error) {
	if d.size/spoolLook != (d.size+int64(len(b)))/spoolLook {
		if err := d.to.room(int64(len(b))); err != nil {
			return 0, err
		}
	}
	n, err := d.file.Write(b)
	d.size += int64(n)
	return n, err
}

func (d *s3Draft) Keep(ctx context.Context, name string) error {
	err := d.to.insist(ctx, mayPass, func() error { return d.to.send(ctx, name, io.NewSectionReader(d.file, 0, d.size), d.size) })
	return errors.Join(err, d.Discard())
}

func (d *s3Draft) Discard() error {
	if d.done {
		return nil
	}
	d.done = true
	err := d.file.Close()
	if !d.unnamed {
		err = errors.Join(err, os.Remove(d.file.Name()))
	}
	if err != nil {
		return fmt.Errorf("remove a file that was to be sent: %w", err)
	}
	return nil
}
