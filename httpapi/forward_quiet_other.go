//go:build !unix

package httpapi

import "net"

// quiet returns true: this platform can't look, and a closed connection fails when used.
func quiet(net.Conn) bool { return true }

// hungUp returns false: this platform can't look.
func hungUp(net.Conn) bool { return false }
