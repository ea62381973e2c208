//go:build !linux

package resident

// releaseProgram does nothing on this platform.
func releaseProgram() {}
