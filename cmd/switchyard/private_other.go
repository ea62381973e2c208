//go:build !unix

package main

// privateFiles does nothing where files have no such modes.
func privateFiles() {}
