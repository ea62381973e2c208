package httpapi

import (
	"encoding/binary"
	"net"
	"syscall"
)

// established is TCP_ESTABLISHED, the state in which both sides may send.
const established = 1

// halfClosed reports whether the other side of a TCP connection will send nothing more.
func halfClosed(c net.Conn) bool {
	sys, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		// The kernel gives as much of TCP_INFO as is asked for. The state is its first byte.
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		var first [4]byte
		binary.NativeEndian.PutUint32(first[:], uint32(info))
		ended = err == nil && first[0] != established
	})
	return err != nil || ended
}
