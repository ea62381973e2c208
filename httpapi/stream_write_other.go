//go:build !unix

package httpapi

import "syscall"

// writeNow writes nothing on this platform; the blocking writer sends everything.
func writeNow(syscall.RawConn, []byte) (int, error) { return 0, nil }
