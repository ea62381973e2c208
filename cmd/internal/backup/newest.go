package backup

import (
	"context"
	"fmt"
)

// held is a backup in an archive.
type held struct {
	name string
	from *Archive  // with the key of the backup
	m    *Manifest // nil: it can't be read
	err  error     // why
}

// hold reads the manifest of a backup from a file, also of one that is not encrypted among those that
// are.
func (a *Archive) hold(ctx context.Context, file, name string) *held {
	h := &held{name: name, from: a}
	_, sealed, _ := momentOf(name)
	switch {
	case sealed && a.key == nil:
		h.err = fmt.Errorf("%s in %s is encrypted: give its key with --key-file", name, a)
		return h
	case !sealed:
		h.from = NewArchive(a.place, nil)
	}
	h.m, h.err = h.from.manifestAt(ctx, file, name)
	return h
}
