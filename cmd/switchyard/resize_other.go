//go:build !unix

package main

import "os"

// notifyResize returns no channel on this platform: the size is looked at with each frame.
func notifyResize() (resized <-chan os.Signal, stop func()) { return nil, func() {} }
