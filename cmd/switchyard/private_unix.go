//go:build unix

package main

import "syscall"

// privateFiles has whatever this program makes be for its user alone.
func privateFiles() { syscall.Umask(0o077) }
