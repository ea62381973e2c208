//go:build !unix

package httpapi

import "net"

// quiet can't be told here; a connection that was closed shows when it is used.
func quiet(net.Conn) bool { return true }

// hungUp can't be told either.
func hungUp(net.Conn) bool { return false }
