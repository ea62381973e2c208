package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// relaySilence is how long a stream that another node sends may be silent, in which
// it says several times that it is there.
const relaySilence = 45 * time.Second

// relay is a stream that another node sends, on its way to the client.
type relay struct {
	server *Server
	client *conn
	owner  *peerConn
	from   netip.Addr // the address that it counts for
	ended  atomic.Bool
}

// askStream is ask for a request that may be answered with a stream. Then the answer
// has been read up to where the stream begins.
func (c *peerConn) askStream(req *fasthttp.Request, res *fasthttp.Response, media string, deadline time.Time) (began, streams bool, err error) {
	if err := c.conn.SetDeadline(deadline); err != nil {
		return false, false, fmt.Errorf("forward: %w", err)
	}
	c.deadline = deadline
	if err := c.write(req); err != nil {
		return true, false, err
	}
	if err := res.Header.Read(c.reader()); err != nil {
		return true, false, fmt.Errorf("forward: read the answer: %w", err)
	}
	if res.StatusCode() == http.StatusOK && bytes.HasPrefix(res.Header.ContentType(), []byte(media)) {
		return true, true, nil
	}
	if err := res.ReadBody(c.r, maxAnswer); err != nil {
		return true, false, fmt.Errorf("forward: read the answer: %w", err)
	}
	c.giveReader()
	return true, false, nil
}

// relay passes on another node's stream.
func (t *forwarding) relay(owner *peerConn) {
	x := t.x
	checkOwner(&x.ctx.Response.Header)
	if credential := t.checked(); credential != "" {
		t.recognize(credential) // the other node has sent 200
	}
	r := &relay{server: t.server, client: x.conn, owner: owner, from: x.takeShare()}
	t.server.detach(x, r, func() { go r.pump() })
	x.ctx.Response.Reset()
}

// pump runs until either side ends.
func (r *relay) pump() {
	defer r.End()
	var buf [8 << 10]byte
	for {
		if r.owner.conn.SetDeadline(time.Now().Add(relaySilence)) != nil {
			return
		}
		n, err := r.owner.next(buf[:])
		if n > 0 && !writeSlowly(r.client.Conn, buf[:n], r.server.cfg.WriteTimeout) {
			return
		}
		if err != nil {
			return
		}
	}
}

// End implements ending.
func (r *relay) End() {
	if r.ended.Swap(true) {
		return
	}
	r.owner.close()
	r.server.waits.leave(r.from)
	r.server.forgetStream(r)
	_ = r.client.Close()
}
