package httpapi

import (
	"errors"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// lines is an answer of lines on its way to the client, or to the node that a client has
// asked. Its goroutine makes a block of lines when the connection has taken the one
// before, so that a slow client costs no more memory than a quick one.
type lines struct {
	server  *Server
	conn    *conn
	source  tracker.Lines
	from    netip.Addr // the address that it counts for
	request string
	chunked bool
	coding  coding
	// begun is set by who closes the source: the goroutine, or End if it comes first.
	begun, ended atomic.Bool
}

// streamMedia is the media type of the stream that a request is answered with.
func (x *exchange) streamMedia() string {
	if op := x.route.Op; op.Lines {
		return op.Media[0]
	}
	return eventStream
}

// chunked reports whether the stream that a request is answered with comes in chunks.
func (x *exchange) chunked() bool { return x.route.Op.Lines && x.ctx.Request.Header.IsHTTP11() }

// describeStream sets the headers of lines, or of events, for the answer to HEAD. Their length is not known.
func (x *exchange) describeStream() {
	header := &x.ctx.Response.Header
	header.SetContentType(x.streamMedia())
	header.SetCanonical(headerCacheControl, valueNoStore)
	header.SetCanonical(headerBuffering, valueNo)
	header.Del(fasthttp.HeaderContentLength)
	if coding := x.linesCoding(); coding != codingNone {
		header.SetContentEncodingBytes(codingNames[coding])
	}
}

// headLines answers HEAD for lines. Its status is that of a GET that begins now, and nothing is read or recorded.
func (s *Server) headLines(x *exchange, req *tracker.Request, in any) error {
	if s.draining.Load() {
		return tracker.Moved("The node is shutting down.")
	}
	if err := s.share(x); err != nil {
		return err
	}
	kept := *req
	kept.HeadOnly = true
	source, err := s.engine().Export(&kept, x.route.Op, in)
	if err != nil {
		return err
	}
	source.Close()
	return s.respond(x, &tracker.Reply{Outcome: tracker.Done})
}

// sendLines answers a request with lines.
func (s *Server) sendLines(x *exchange, req *tracker.Request, in any) error {
	if s.draining.Load() {
		return tracker.Moved("The node is shutting down.")
	}
	if err := s.share(x); err != nil {
		return err
	}
	kept := *req // the exchange's own is used again
	source, err := s.engine().Export(&kept, x.route.Op, in)
	if err != nil {
		return err
	}
	l := &lines{server: s, conn: x.conn, source: source, from: x.takeShare(), request: x.id, chunked: x.chunked(), coding: x.linesCoding()}
	if ending, ok := source.(tracker.EndingLines); ok {
		ending.OnEnd(l.End)
	}
	if l.coding != codingNone {
		x.ctx.Response.Header.SetContentEncodingBytes(codingNames[l.coding])
	}
	s.detach(x, l, func() {
		if !l.begun.Swap(true) {
			go l.run()
		}
	})
	return nil
}

// run sends all lines. The last chunk, or a line that is the last by its content, says
// that nothing is missing.
func (l *lines) run() {
	defer l.End()
	closeSource := sync.OnceFunc(l.source.Close)
	defer closeSource()
	next, err := l.blocks()
	if err != nil {
		l.cutOff(err)
		return
	}
	var text []byte
	for !l.ended.Load() {
		block, last, err := next()
		if err != nil {
			l.cutOff(err)
			return
		}
		text = text[:0]
		switch {
		case !l.chunked:
			text = append(text, block...)
		case len(block) > 0: // an empty chunk would be the last
			text = append(strconv.AppendInt(text, int64(len(block)), 16), "\r\n"...)
			text = append(append(text, block...), "\r\n"...)
		}
		if last {
			closeSource() // a client that has it all may ask for the next
			if l.chunked {
				text = append(text, "0\r\n\r\n"...)
			}
		}
		if !writeSlowly(l.conn.Conn, text, l.server.cfg.WriteTimeout) || last {
			return
		}
	}
}

// blocks returns a function that returns the blocks to send, one after another, in the coding of
// the answer. The last one may be empty.
func (l *lines) blocks() (next func() (block []byte, last bool, err error), err error) {
	var encoder *linesEncoder
	if l.coding != codingNone {
		if encoder, err = newLinesEncoder(l.coding); err != nil {
			return nil, err
		}
	}
	return func() ([]byte, bool, error) {
		block, err := l.source.Next()
		last := errors.Is(err, io.EOF)
		if last {
			block, err = nil, nil
		}
		if err == nil && encoder != nil {
			block, err = encoder.next(block, last)
		}
		return block, last, err
	}, nil
}

// cutOff logs why the answer is not whole.
func (l *lines) cutOff(err error) {
	l.server.cfg.Logger.Error("an answer was cut off", "request", l.request, "error", describe(err))
}

// End implements ending.
func (l *lines) End() {
	if l.ended.Swap(true) {
		return
	}
	if !l.begun.Swap(true) {
		l.source.Close()
	}
	l.server.waits.leave(l.from)
	l.server.forgetStream(l)
	_ = l.conn.Close()
}
