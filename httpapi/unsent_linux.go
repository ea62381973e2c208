package httpapi

import (
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
const tcpNotSentLowat = 25

// boundUnsent bounds the bytes that the kernel takes of a connection and has not sent
// yet. Without it the kernel keeps megabytes for a client that reads nothing, and the
// budget sees none of them. Bytes on their way to a client are not bounded, so that
// distance costs no speed.
func boundUnsent(c net.Conn) {
	sys, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sys.SyscallConn(); err == nil {
		// A kernel without the option keeps its default.
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
		})
	}
}
