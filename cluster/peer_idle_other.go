//go:build !unix

package cluster

import "net"

// isIdleOpen reports whether an idle connection is open and has nothing to read. This platform
// can't tell without reading.
func isIdleOpen(net.Conn) bool { return true }
