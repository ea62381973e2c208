//go:build unix

package processors

import (
	"syscall"
	"time"
)

// usedTime returns the time that the process has taken of all processors.
func usedTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
