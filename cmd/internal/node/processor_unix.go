//go:build unix

package node

import (
	"syscall"
	"time"
)

// processorTime returns how long processors have worked for this process; ok is false if
// that is not known.
func processorTime() (spent time.Duration, ok bool) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, false
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), true
}
