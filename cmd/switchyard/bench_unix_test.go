//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A bench whose output nobody reads, or whose terminal is closed, stops its nodes like one that is interrupted.
func TestMeasuring_EndsWithItsReader(t *testing.T) {
	t.Parallel()
	for _, gone := range []syscall.Signal{syscall.SIGPIPE, syscall.SIGHUP} {
		if signal.Ignored(gone) {
			continue
		}
		ctx, cancel := measuring()
		if err := syscall.Kill(syscall.Getpid(), gone); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%s does not end the run", gone)
		}
		cancel()
	}
}
