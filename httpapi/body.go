package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

const (
	defaultMaxBody = 1 << 20
	// prefetched is how much of a body of known length fasthttp has read before the
	// handler is called.
	prefetched = 8 << 10
)

// refuseBody makes the checks of the body that need only the headers.
func (x *exchange) refuseBody() error {
	header := &x.ctx.Request.Header
	length := header.ContentLength()
	if x.route.unsigned(header) {
		return tracker.Unsigned()
	}
	if x.oversize || length > x.route.maxBody {
		return errBodyTooLarge(x.route.maxBody)
	}
	if x.route.plan != nil && x.route.plan.raw != nil {
		if refused := x.route.plan.refuseRaw(header); refused != nil && x.route.plan.refused == nil {
			return refused
		}
		return nil
	}
	sent := length > 0 || length == -1 // in chunks
	if !x.route.readsBody() && !(sent && x.route.checksBody()) {
		return nil
	}
	if t := header.ContentType(); len(t) > 0 && !x.route.dialect.accepts(t) {
		return x.route.dialect.refuseMedia()
	}
	if e := header.PeekCanonical(headerContentEncoding); len(e) > 0 && string(e) != "identity" {
		return x.route.dialect.refuseMedia()
	}
	return nil
}

// markOversize is a header that preview sets. A client can't send a header of this name.
var markOversize = []byte(":oversize")

// unsigned reports whether the headers alone show that a call is not signed as it must
// be. None of the body of such a call is read: these endpoints need no credential, so
// anybody could fill the memory with bodies.
func (rt *route) unsigned(header *fasthttp.RequestHeader) bool {
	if rt.Op == nil || rt.Op.Signed == nil {
		return false
	}
	return !rt.Op.Signed(func(name string) string {
		value, _ := headerValue(header, name)
		return string(value)
	})
}

// readHeaders sees the headers before fasthttp reads the beginning of the body, which
// it does before the handler is called and would wait for. A body that will be
// refused for its length or its signature is taken away here, so that the refusal goes
// out at once.
func (s *Server) readHeaders(header *fasthttp.RequestHeader) (none fasthttp.RequestConfig) {
	length := header.ContentLength()
	signed := length > prefetched && s.maybeSigned(header.RequestURI())
	if length <= defaultMaxBody && length <= s.smallestBody && !signed {
		return none
	}
	limit := defaultMaxBody
	var t target
	var p params
	if t.parse(header.RequestURI()) == targetFine {
		// The request has no context yet, and the router needs one to answer in.
		if place := s.router.find(&t, &p, new(fasthttp.RequestCtx)); place != nil {
			if rt := place.route(header.Method()); rt != nil {
				limit = rt.maxBody
				if signed && rt.unsigned(header) {
					limit = 0
				}
			}
		}
	}
	if length > limit {
		header.SetContentLength(0)
		header.SetCanonical(markOversize, valueTrue)
	}
	return none
}

// maybeSigned reports whether a path may be that of an operation with signed bodies,
// without the cost of finding its route.
func (s *Server) maybeSigned(uri []byte) bool {
	for _, prefix := range s.signedPaths {
		if bytes.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}

// bodyUnderWay reports whether a part of the body may not have arrived yet.
func (x *exchange) bodyUnderWay() bool { return !x.read && x.ctx.RequestBodyStream() != nil }

// readBody reads the body, never more than the route takes; once. After a failure a part of the
// body is gone, so the next call has the same error.
func (s *Server) readBody(x *exchange) error {
	if !x.read && x.lost == nil {
		x.lost = s.takeBody(x)
	}
	return x.lost
}

func (s *Server) takeBody(x *exchange) error {
	x.body = x.body[:0]
	stream := x.ctx.RequestBodyStream()
	if stream == nil {
		x.body = append(x.body, x.ctx.Request.Body()...)
		x.read = true
		return nil
	}
	if header := &x.ctx.Request.Header; header.ContentLength() == -1 {
		// fasthttp adds the fields behind the last chunk to the header, where they would
		// pass for what a proxy in front of the service has written.
		var sent fasthttp.RequestHeader
		header.CopyTo(&sent)
		defer sent.CopyTo(header)
	}
	limit := x.route.maxBody
	if err := s.awaitBody(x); err != nil {
		return err
	}
	if x.conn != nil {
		x.conn.receive(x, x.waitedForBytes > 0)
		defer x.conn.received()
	}
	defer func(began time.Time) { x.arrival += s.now().Sub(began) }(s.now())
	for {
		if len(x.body) == cap(x.body) {
			size := min(max(2*cap(x.body), 4<<10), limit+1)
			if err := s.chargeBody(x, size); err != nil {
				return err
			}
			grown := make([]byte, len(x.body), size)
			copy(grown, x.body)
			x.body = grown
		}
		n, err := stream.Read(x.body[len(x.body):min(cap(x.body), limit+1)])
		x.body = x.body[:len(x.body)+n]
		if len(x.body) > freeBytes { // in a buffer that was there
			if err := s.chargeBody(x, cap(x.body)); err != nil {
				return err
			}
		}
		x.large = x.large || len(x.body) > defaultMaxBody
		switch {
		case len(x.body) > limit:
			return errBodyTooLarge(limit)
		case err == io.EOF:
			x.read = true
			s.restart(x)
			return x.checkLength()
		case err != nil:
			return x.readError(err)
		}
	}
}

// restart lets the time to answer a request begin when its body has arrived: how
// long that takes is up to the client's line, and bounded (arrival.go).
// Another node that sent it has done so, and waits no longer than it said. The time for
// which the request waited for its bytes counts.
func (s *Server) restart(x *exchange) {
	if x.conn == nil || !x.conn.peer {
		x.clock = s.now().Add(-x.waitedForBytes)
	}
}

// dropBody gives up a large body whose content was decoded: the request may be answered
// much later. The content stays charged for as long as somebody holds it.
func (x *exchange) dropBody(req *tracker.Request) {
	req.BodySize = len(x.body)
	if x.large && !x.route.tools {
		x.body = nil
	}
	if x.held != nil {
		req.Memory = x.held
	}
}

// checkLength makes sure that a body is all there: fasthttp's stream ends quietly where
// the client left, and where nothing can be read behind the last chunk.
func (x *exchange) checkLength() error {
	length := x.ctx.Request.Header.ContentLength()
	if length > 0 && len(x.body) != length || length == -1 && x.conn != nil && !x.conn.peer && x.conn.framing.ended < x.conn.served {
		x.read = false
		return x.readError(io.ErrUnexpectedEOF)
	}
	return nil
}

// readError returns the failure to answer an unreadable request with.
func (x *exchange) readError(err error) error {
	var timeout net.Error
	var small *fasthttp.ErrSmallBuffer
	switch {
	case x.conn != nil && x.conn.fault != nil:
		return x.conn.fault
	case x.conn != nil && x.conn.arrival.spared:
		return errSpared()
	case errors.As(err, &timeout) && timeout.Timeout():
		return errTooSlow()
	case errors.As(err, &small):
		return errHeadersTooLarge()
	}
	return errMalformed()
}

// unread reports whether bytes of the body are still to come on the connection,
// where the next request would be looked for.
func (x *exchange) unread() bool {
	if x.read || x.oversize {
		return x.oversize
	}
	length := x.ctx.Request.Header.ContentLength()
	return length == -1 || length > prefetched
}

// hangUp ends the connection after the response, without cutting it off.
func (x *exchange) hangUp() {
	x.ctx.SetConnectionClose()
	if x.conn != nil {
		x.conn.linger.Store(true)
	}
}
