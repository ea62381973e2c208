//go:build unix

package httpapi

import (
	"net"
	"syscall"
)

// quiet reports whether an idle connection is open and has nothing to read: the other
// side neither closed it nor sent anything.
func quiet(conn net.Conn) bool {
	open, said := peek(conn)
	return open && !said
}

// hungUp reports whether the other side has closed a connection. Bytes that it sent
// before don't matter.
func hungUp(conn net.Conn) bool {
	open, _ := peek(conn)
	return !open
}

// peek reports whether a connection is open and whether there is something to read. A deadline of
// the connection that has passed doesn't matter.
func peek(conn net.Conn) (open, said bool) {
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return true, false
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false, false
	}
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		said = err == nil && n > 0
		open = said || err == syscall.EAGAIN
	})
	return err == nil && open, said
}
