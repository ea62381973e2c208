//go:build unix

package httpapi

import (
	"errors"
	"syscall"
)

// writeNow writes as much as a connection takes at once.
func writeNow(raw syscall.RawConn, text []byte) (n int, err error) {
	failed := raw.Write(func(fd uintptr) bool {
		for n < len(text) {
			var m int
			m, err = syscall.Write(int(fd), text[n:])
			if err == nil && m > 0 {
				n += m
				continue
			}
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if errors.Is(err, syscall.EAGAIN) {
				err = nil
			}
			return true
		}
		return true
	})
	return n, errors.Join(failed, err)
}
