package testkit

import (
	"io"
	"net"
	"testing"
)

// Unread asks the server at an address for its API description and reads only the beginning of the
// answer, which is more than the connection holds. The connection is open until the test ends.
func Unread(t testing.TB, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil { //nolint:forcetypeassert // of net.Dial
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}
