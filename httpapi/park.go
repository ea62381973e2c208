package httpapi

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// A request that waits for a change would hold its connection's goroutine, reader and
// buffers for up to half a minute, some 30 KB; thousands wait at a time. So it is
// parked: fasthttp gives up the connection, and only the request's bytes are kept. When
// there is an answer, or the time is up, fasthttp reads the bytes once more as if they
// had just arrived, and the handler continues where it stopped.

// parkedFree is how large a request may be, in bytes, that waits without a charge. It has given its connection's
// buffers up, and thousands wait for up to half a minute.
const parkedFree = 4 << 10

// parked is a request that waits and holds no goroutine.
type parked struct {
	conn *conn
	// req and waiting continue the request, once: see release.
	req     *tracker.Request
	waiting tracker.Waiting
	// raw is the request to be read again, with the bytes that were read behind it.
	raw     []byte
	start   time.Time
	rated   bool
	verdict verdict
	taken   atomic.Bool
	// workspace is that of the request, and turn is the turn in which it resumes.
	workspace [16]byte
	turn      resumeTurn
	// refused is the error to answer at once with, because the bytes behind the request find no room.
	refused error
	// from is the address that the request counts for while it waits.
	from netip.Addr
	// account, charged and maybe are the exchange's.
	account accountKind
	charged [16]byte
	maybe   bool
}

// begin runs an operation that can wait, or continues one that was parked. If it has to
// wait, the exchange is parked and has no answer yet.
func (s *Server) begin(x *exchange, op *tracker.Op, req *tracker.Request, in any) (reply tracker.Reply, err error) {
	var waiting tracker.Waiting
	var waits bool
	if p := x.resumed; p != nil {
		x.resumed = nil
		if x.route.tools || x.route.Op.Kind != tracker.Query {
			s.resumes.end(x.takeTurn()) // it may wait for its commit, or for a turn of another kind
		}
		req, waiting = p.release()
		if p.refused != nil {
			waiting.Leave()
			return reply, p.refused
		}
		reply, waits, err = waiting.Resume()
	} else if x.conn == nil {
		return s.engine().Do(req, op, in) // not of our listener: it can't be parked
	} else {
		reply, waiting, err = s.engine().Begin(req, op, in)
		x.spent = req.Spent
		waits = waiting != nil
	}
	if err == nil && waits {
		if err = s.park(x, req, waiting); err != nil {
			waiting.Leave()
		}
	}
	return reply, err
}

// park has fasthttp release the connection once the handler has returned.
func (s *Server) park(x *exchange, req *tracker.Request, waiting tracker.Waiting) error {
	if err := s.readBody(x); err != nil {
		return err
	}
	raw := x.raw()
	if len(raw)-len(x.body) > s.cfg.MaxHeaderBytes+addedHeaders { // fasthttp could not read the headers again
		return errHeadersTooLarge()
	}
	if err := s.share(x); err != nil {
		return err
	}
	if len(raw) > parkedFree {
		to, from := s.accountsOf(x)
		if err := s.budget.raise(x.conn, to, from, bodyPart, cap(raw), false); err != nil {
			return err
		}
	}
	p := &parked{from: x.takeShare(), account: x.account, charged: x.charged, maybe: x.maybe, waiting: waiting, conn: x.conn, req: req, workspace: req.Workspace, start: x.start, rated: x.rated, verdict: x.verdict, raw: raw}
	x.parked = true
	x.conn.parked.Store(p)
	x.ctx.HijackSetNoResponse(true)
	x.ctx.Hijack(func(c net.Conn) { s.rest(p, c) })
	return nil
}

// release returns the parts of a resumed request that continue it, and keeps none of them: the answer is
// among them, and resume keeps p for as long as the connection goes on.
func (p *parked) release() (req *tracker.Request, waiting tracker.Waiting) {
	req, waiting = p.req, p.waiting
	p.req, p.waiting = nil, nil
	return req, waiting
}

// raw is the request as fasthttp will read it again.
func (x *exchange) raw() []byte {
	var header fasthttp.RequestHeader
	x.ctx.Request.Header.CopyTo(&header)
	for _, name := range [...]string{fasthttp.HeaderExpect, fasthttp.HeaderTransferEncoding, fasthttp.HeaderTrailer, string(markOversize)} {
		header.Del(name)
	}
	header.SetNoDefaultContentType(true)
	if !x.route.readsBody() {
		x.body = x.body[:0] // nobody looks at it
	}
	header.SetContentLength(len(x.body))
	header.SetCanonical(headerRequestID, x.requestID())
	raw := header.Header()
	return append(append(make([]byte, 0, len(raw)+len(x.body)), raw...), x.body...)
}

// rest lets a parked request sleep. c reads the bytes that fasthttp has read beyond the
// request, and then the connection.
func (s *Server) rest(p *parked, c net.Conn) {
	if left := leftover(p.conn, c); len(left) > 0 {
		p.raw = append(p.raw, left...)
		if len(p.raw) > parkedFree {
			to, from := s.accounts(p.account, p.charged, p.from)
			p.refused = s.budget.raise(p.conn, to, from, bodyPart, cap(p.raw), false)
		}
	}
	// fasthttp closes the connection when this returns, or thinks so.
	p.conn.keep.Add(1)
	p.conn.rests()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resuming.Add(1)
	if s.closing {
		go s.resume(p, resumeTurn{})
		return
	}
	s.parked[p] = struct{}{}
	if p.refused != nil {
		s.resumes.add(p)
		return
	}
	p.waiting.Arm(func() { s.resumes.add(p) })
}

// leftover returns the bytes that were read of a connection but not used. It does not
// wait for more.
func leftover(conn *conn, c net.Conn) (left []byte) {
	if conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return nil
	}
	var buf [512]byte
	for {
		n, err := c.Read(buf[:])
		left = append(left, buf[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = conn.SetReadDeadline(time.Time{})
			return left
		}
		if err != nil || n == 0 {
			return left
		}
	}
}

// resume serves a parked request again, and then the next ones on its connection.
func (s *Server) resume(p *parked, turn resumeTurn) {
	s.mu.Lock()
	delete(s.parked, p)
	s.mu.Unlock()
	if !p.conn.parked.CompareAndSwap(p, nil) {
		s.resumes.end(turn)
		return // woken twice
	}
	p.turn = turn
	p.conn.goesOn()
	s.waits.leave(p.from)
	p.conn.resumed, p.conn.again = p, p.raw
	p.raw = nil
	_ = s.fast.ServeConn(&resumedConn{p.conn}) // after any error the connection is done
	if s.taken(p) {
		p.waiting.Leave() // the connection failed before a handler was called
		s.resumes.end(turn)
	}
}

// resumedConn is a connection that fasthttp serves again after a request was parked
// on it. fasthttp keeps its idle connections in a map and removes a released connection
// late, perhaps after it was given the same one again. The connection
// would be missing from the map then, and Shutdown would wait for it as for a busy
// one. So each resumption gives fasthttp a net.Conn of its own.
type resumedConn struct{ *conn }

// connOf returns the connection of a request, or nil if it is not of our listener.
func connOf(ctx *fasthttp.RequestCtx) *conn {
	switch c := ctx.Conn().(type) {
	case *conn:
		return c
	case *resumedConn:
		return c.conn
	}
	return nil
}

// taken notes that a handler has a resumed request, or that none ever will. It reports whether
// that was not noted before.
func (s *Server) taken(p *parked) bool {
	if p.taken.Swap(true) {
		return false
	}
	s.resuming.Add(-1)
	return true
}

// unpark wakes every parked request so that it answers with the data there is, until ctx
// ends.
func (s *Server) unpark(ctx context.Context) {
	s.mu.Lock()
	all := make([]*parked, 0, len(s.parked))
	for p := range s.parked {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		go s.resume(p, resumeTurn{})
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.resuming.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
