package httpapi

import (
	"bufio"
	"net"
	"testing"
)

func BenchmarkForward(b *testing.B) {
	a := newAtlas("b")
	entry, owner := a.join(b, "a"), a.join(b, "b")
	for name, to := range map[string]*bundle{"direct": owner, "forwarded": entry} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				c, err := net.Dial("tcp", to.addr)
				if err != nil {
					b.Error(err)
					return
				}
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				request := []byte("GET " + things + "/1 HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer " + token + "\r\n\r\n")
				for pb.Next() {
					if _, err := c.Write(request); err != nil {
						b.Error(err)
						return
					}
					if a, err := readAnswer(r, "GET"); err != nil || a.StatusCode != 201 {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
