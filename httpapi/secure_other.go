//go:build !linux

package httpapi

import "net"

// halfClosed reports whether the other side of a TCP connection has closed it, unless it
// has sent bytes before that nobody has read.
func halfClosed(c net.Conn) bool { return hungUp(c) }
