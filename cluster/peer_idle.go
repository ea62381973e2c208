//go:build unix

package cluster

import (
	"net"
	"syscall"
)

// isIdleOpen reports whether an idle connection is open and has nothing to read.
func isIdleOpen(conn net.Conn) bool {
	raw, err := socket(conn)
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN
		return true
	})
	return err == nil && open
}
