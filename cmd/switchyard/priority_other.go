//go:build !linux

package main

// lowerPriority leaves the priority as it is: nice(1) lowers it elsewhere.
func lowerPriority() {}
