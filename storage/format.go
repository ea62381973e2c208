package storage

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Format numbers what one version of the program writes and another one has to read: rows, log
// entries, images of shards, messages between nodes, and Pebble's files. All nodes of a cluster write
// the same format: the newest one that every one of them knows. They read each from FormatOldest on.
type Format int

// The formats. Never change the meaning of one.
const (
	// FormatFirst is that of data written before formats had numbers.
	FormatFirst Format = 1
	// FormatNumbered is the first one that a data directory names, so that a program that does not
	// know the directory's format refuses to open it.
	FormatNumbered Format = 2
	// FormatReferences has records to which plain rows refer (Header.ReferredBy): the event of
	// an issue's creation has the issue as a reference until the issue changes.
	FormatReferences Format = 3

	// FormatOldest is the oldest format that this program reads.
	FormatOldest = FormatFirst
	// FormatNewest is the newest format that this program reads and writes.
	FormatNewest = FormatReferences
)

// pebbleFormats are the versions of Pebble's files by format. They are not Pebble's newest: an
// upgrade of the library alone must not make files that the version before can't open.
var pebbleFormats = map[Format]pebble.FormatMajorVersion{
	FormatFirst:      pebble.FormatValueSeparation,
	FormatNumbered:   pebble.FormatValueSeparation,
	FormatReferences: pebble.FormatValueSeparation,
}

// Raise lets Pebble write its files in the version of a format. There is no way back.
func (s *Store) Raise(f Format) error {
	version, ok := pebbleFormats[f]
	if !ok {
		return fmt.Errorf("raise the store: format %d is unknown", f)
	}
	for _, db := range []*pebble.DB{s.raft, s.state} {
		if db.FormatMajorVersion() >= version {
			continue
		}
		if err := db.RatchetFormatMajorVersion(version); err != nil {
			return fmt.Errorf("raise the store to format %d: %w", f, err)
		}
	}
	return nil
}
