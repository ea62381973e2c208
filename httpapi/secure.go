package httpapi

import (
	"net"
	"syscall"
)

// Clients may connect over TLS: then the listener of Serve gives *tls.Conn, and the
// handshake is made by the first read, within the time that a request has to arrive.
// fasthttp sees what is inside.

// socket returns the connection below TLS, or the connection itself. The cluster's type of a node's
// connection names the one below it, too.
func socket(c net.Conn) net.Conn {
	if above, ok := c.(interface{ NetConn() net.Conn }); ok {
		return above.NetConn()
	}
	return c
}

// rawWriter returns the socket of a connection for writes past the connection, or nil where they
// would be read by others: with TLS. A connection of a node has TLS below its own type and gives its
// socket for looks at its state, so a type other than TCP's has to say that nothing is between.
func rawWriter(c net.Conn) syscall.RawConn {
	if _, tcp := c.(*net.TCPConn); !tcp {
		told, tells := c.(interface{ Plain() bool })
		if !tells || !told.Plain() {
			return nil
		}
	}
	sys, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// cut closes a connection at once. Closing TLS would say goodbye to the client first, and
// wait for a client that reads nothing.
func cut(c net.Conn) error {
	below := socket(c)
	err := below.Close()
	if below != c {
		_ = c.Close() // without a socket it waits for nothing
	}
	return err
}

// gone reports whether the client, or the node that passes its request on, has closed the
// connection while the request waits. The last bytes of TLS, with which the other side says
// goodbye, are not read meanwhile, so the state of the socket is asked. A node's connection has
// one request at a time, may be of TLS below its own type, and ends when that node or its client has gone.
func (c *conn) gone() bool {
	if c == nil {
		return false
	}
	if below := socket(c.Conn); c.peer || below != c.Conn {
		return halfClosed(below)
	}
	return hungUp(c.Conn)
}

// scheme is the beginning of the URLs at which clients reach this node.
func (s *Server) scheme() string {
	if s.cfg.Secure {
		return "https://"
	}
	return "http://"
}
