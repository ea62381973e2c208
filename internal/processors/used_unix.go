//go:build unix

package processors

import (
	"syscall"
	"time"
)

// Used returns how long processors have worked for the process; ok is false if that is not known.
func Used() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
