//go:build !linux

package httpapi

import "net"

// boundUnsent does nothing where the kernel has no such bound, or another number for it.
func boundUnsent(net.Conn) {}
