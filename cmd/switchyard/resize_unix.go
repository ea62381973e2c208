//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResize returns a channel that gets a value when the terminal's size has changed.
func notifyResize() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
