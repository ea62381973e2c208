//go:build unix

package main

import "syscall"

// privateFiles makes all files of this program accessible to its user alone.
func privateFiles() { syscall.Umask(0o077) }
