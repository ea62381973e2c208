package httpapi

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// A stream of events is a response that does not end. While it lasts the connection
// belongs to it, not to fasthttp, and holds no goroutine and no buffer: the goroutine
// that makes an event writes as much of it as the connection accepts at once. A goroutine
// of the stream waits for the rest, as long as any response may wait to be accepted, and
// the budget counts the part meanwhile (budget_stream.go). A listener that does not read
// is disconnected then, and no other listener waits for it.

// eventStream is the media type of streams.
const eventStream = "text/event-stream"

// streamChunk is how much of a stream is written under one deadline, in bytes: who
// reads slowly, but does, is not cut off.
const streamChunk = 32 << 10

// ending is a stream or relay that Shutdown has to end.
type ending interface{ End() }

// stream is a stream to a client, or to the node that a client has asked.
type stream struct {
	server *Server
	conn   *conn
	source tracker.Stream
	from   netip.Addr // the address that it counts for
	// raw writes without waiting; nil: the connection can't.
	raw   syscall.RawConn
	ended atomic.Bool
	parts streamParts
}

var _ tracker.Listener = (*stream)(nil)

// streams reports whether the request is for a stream.
func (x *exchange) streams() bool {
	return x.asksForStream() && x.conn != nil && !x.ctx.IsHead()
}

// headsStream reports whether the request is HEAD for a stream.
func (x *exchange) headsStream() bool {
	return x.asksForStream() && x.ctx.IsHead()
}

// asksForStream reports whether a GET of the same path and headers is answered by a stream.
func (x *exchange) asksForStream() bool {
	op := x.route.Op
	return op.Lines || op.Streams && acceptsStream(x.ctx.Request.Header.PeekAll(fasthttp.HeaderAccept))
}

// acceptsStream reports whether the client prefers a stream to JSON: by weight, or by
// order where the weights are equal.
func acceptsStream(accept [][]byte) bool {
	best, stream := 0, false
	for _, line := range accept {
		for part := range bytes.SplitSeq(line, []byte{','}) {
			name, parameters, _ := bytes.Cut(part, []byte{';'})
			name = bytes.ToLower(bytes.TrimSpace(name))
			isStream := string(name) == eventStream
			if !isStream && string(name) != "application/json" && string(name) != "application/*" && string(name) != "*/*" {
				continue
			}
			if weight := weightOf(parameters); weight > best {
				best, stream = weight, isStream
			}
		}
	}
	return stream
}

// weightOf reads the weight among a media range's parameters, in thousandths; 0 if it
// can't be read.
func weightOf(parameters []byte) int {
	for parameter := range bytes.SplitSeq(parameters, []byte{';'}) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(parameter), []byte{'='})
		if len(name) != 1 || name[0]|0x20 != 'q' {
			continue
		}
		return weightValue(bytes.TrimSpace(value))
	}
	return 1000
}

// weightValue reads a weight (RFC 9110, 12.4.2), in thousandths.
func weightValue(value []byte) int {
	whole, digits, _ := bytes.Cut(value, []byte{'.'})
	if len(whole) != 1 || whole[0] != '0' && whole[0] != '1' || len(digits) > 3 {
		return 0
	}
	weight := int(whole[0]-'0') * 1000
	for i, unit := 0, 100; i < len(digits); i, unit = i+1, unit/10 {
		if digits[i] < '0' || '9' < digits[i] {
			return 0
		}
		weight += int(digits[i]-'0') * unit
	}
	if weight > 1000 {
		return 0
	}
	return weight
}

// listen answers a request with a stream.
func (s *Server) listen(x *exchange, req *tracker.Request, in any) error {
	if s.draining.Load() {
		return tracker.Moved("The node is shutting down.")
	}
	if err := s.share(x); err != nil {
		return err
	}
	source, err := s.engine().Listen(req, x.route.Op, in)
	if err != nil {
		return err
	}
	st := &stream{server: s, conn: x.conn, source: source, from: x.takeShare(), raw: rawWriter(x.conn.Conn)}
	st.parts.to, st.parts.from = s.accountsOf(x)
	s.detach(x, st, func() { source.Start(st) })
	return nil
}

// headStream answers HEAD for a stream. Its status is that of a GET that begins now, and no stream begins.
func (s *Server) headStream(x *exchange, req *tracker.Request, in any) error {
	if s.draining.Load() {
		return tracker.Moved("The node is shutting down.")
	}
	if err := s.share(x); err != nil {
		return err
	}
	source, err := s.engine().Listen(req, x.route.Op, in)
	if err != nil {
		return err
	}
	source.Leave()
	return s.respond(x, &tracker.Reply{Outcome: tracker.Done})
}

// detach takes the connection from fasthttp for a stream, and starts the stream when
// fasthttp has released the connection.
func (s *Server) detach(x *exchange, st ending, start func()) {
	x.parked = true                    // there is nothing more to answer
	s.budget.release(x.conn, bodyPart) // the connection lasts as long as the stream, and the body does not
	x.route.observe(http.StatusOK, x.start)
	head, conn := s.streamHead(x), x.conn
	ends := x.streamEnds()
	conn.detached.Store(&st)
	x.ctx.HijackSetNoResponse(true)
	x.ctx.Hijack(func(net.Conn) {
		conn.detached.Store(nil)
		// fasthttp closes the connection when this returns, or thinks so.
		conn.keep.Add(1)
		conn.rests()
		s.mu.Lock()
		closing := s.closing
		if !closing {
			s.streams[st] = s.endAt(st, ends)
		}
		s.mu.Unlock()
		if closing || conn.SetDeadline(time.Now().Add(s.cfg.WriteTimeout)) != nil {
			st.End()
			return
		}
		if _, err := conn.Conn.Write(head); err != nil || conn.SetDeadline(time.Time{}) != nil {
			st.End()
			return
		}
		start()
	})
}

// streamEnds is the time at which the request's stream must end; zero: none. The credential
// of the operator's session is the root token, which is valid for longer than the session. The
// engine ends the streams of all other credentials. Lines are an answer of limited length,
// which was begun in time.
func (x *exchange) streamEnds() time.Time {
	if x.route.Op.Lines {
		return time.Time{}
	}
	return x.sessionEnds
}

// endAt returns a timer that ends a stream; nil for no time. forgetStream stops the timer if
// the stream ends before.
func (s *Server) endAt(st ending, ends time.Time) *time.Timer {
	if ends.IsZero() {
		return nil
	}
	return time.AfterFunc(ends.Sub(s.now()), st.End)
}

// streamHead is the head of a stream's response. It has no length and ends with the
// connection. Lines come in chunks, so that a client sees an answer that was cut off.
func (s *Server) streamHead(x *exchange) []byte {
	b := append(make([]byte, 0, 256), "HTTP/1.1 200 OK\r\nDate: "...)
	b = fasthttp.AppendHTTPDate(b, time.Now())
	b = append(b, "\r\nContent-Type: "+x.streamMedia()+"\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\nConnection: close\r\nX-Request-Id: "...)
	b = append(b, x.requestID()...)
	owner := x.ctx.Response.Header.Peek(headerOwner) // the node's that sends the stream, on its way through this one
	if s.tellsOwner(x) {
		owner = s.clientURL
	}
	if len(owner) > 0 {
		b = append(append(b, "\r\n"+headerOwner+": "...), owner...)
	}
	if coding := x.ctx.Response.Header.ContentEncoding(); len(coding) > 0 { // also that of another node
		b = append(append(b, "\r\nContent-Encoding: "...), coding...)
	}
	b = x.appendRate(b)
	b = s.appendSharing(b, x)
	if x.chunked() {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	return append(b, "\r\n\r\n"...)
}

// Reserve implements tracker.Listener.
func (st *stream) Reserve(size int) bool {
	return st.server.budget.reserve(st.conn, &st.parts, size)
}

// Send implements tracker.Listener.
func (st *stream) Send(text []byte, ready func()) (done bool) {
	rest := text
	if st.raw != nil {
		n, err := writeNow(st.raw, text)
		if rest = text[n:]; err != nil || len(rest) == 0 {
			st.server.budget.release(st.conn, answerPart)
		}
		if err != nil {
			st.End()
			return true
		}
		if len(rest) == 0 {
			return true
		}
	}
	go st.push(rest, cap(text), ready)
	return false
}

// push sends what the connection did not take at once of a part of size bytes.
func (st *stream) push(text []byte, size int, ready func()) {
	sent := st.pushAll(text, size)
	st.server.budget.release(st.conn, answerPart)
	if !sent {
		st.End()
		return
	}
	ready()
}

// pushAll reports whether the client took the text in time.
func (st *stream) pushAll(text []byte, size int) bool {
	budget, timeout := st.server.budget, st.server.cfg.WriteTimeout
	for began := time.Now(); len(text) > 0; {
		chunk := text[:min(streamChunk, len(text))]
		if !writeSlowly(st.conn.Conn, chunk, timeout) {
			return false
		}
		text = text[len(chunk):]
		if time.Since(began) > partTimeouts*timeout && budget.lacks(&st.parts, size) {
			return false
		}
	}
	return true
}

// writeSlowly writes to a connection that may be slow but must make progress.
func writeSlowly(conn net.Conn, text []byte, timeout time.Duration) bool {
	for len(text) > 0 {
		chunk := text[:min(streamChunk, len(text))]
		if conn.SetWriteDeadline(time.Now().Add(timeout)) != nil {
			return false
		}
		if _, err := conn.Write(chunk); err != nil {
			return false
		}
		text = text[len(chunk):]
	}
	return conn.SetWriteDeadline(time.Time{}) == nil
}

// End implements tracker.Listener.
func (st *stream) End() {
	if st.ended.Swap(true) {
		return
	}
	st.source.Leave()
	st.server.waits.leave(st.from)
	st.server.forgetStream(st)
	_ = st.conn.Close() // the client connects again
}

func (s *Server) forgetStream(st ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timer := s.streams[st]; timer != nil {
		timer.Stop()
	}
	delete(s.streams, st)
}

// endStreams ends all streams: their clients continue at another node, or later.
func (s *Server) endStreams() {
	s.mu.Lock()
	all := make([]ending, 0, len(s.streams))
	for st := range s.streams {
		all = append(all, st)
	}
	s.mu.Unlock()
	for _, st := range all {
		st.End()
	}
}
