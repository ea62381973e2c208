//go:build !faults

package node

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// machineClock returns the time of day.
func machineClock() time.Time { return time.Now() }

// machineDisk returns the file system for the data; nil means the machine's.
func machineDisk() vfs.FS { return nil }
