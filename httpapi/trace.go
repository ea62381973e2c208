package httpapi

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
)

// Tracing configures the traces of requests. A request is traced as a whole or not at all,
// which the node that a client asked decides: a forwarded request is traced if it was there.
// Spans are made of the times that the server measures for slow operations, once the request
// has its answer. So an untraced request costs a look at one header and a random number.
type Tracing struct {
	Tracer trace.Tracer
	// Ratio is the share of requests that are traced, 0 to 1.
	Ratio float64
}

const (
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"

	// askedTraces bounds the requests in a second that are traced because a caller asks for
	// it, and askedTracesBurst those at once.
	askedTraces      = 10
	askedTracesBurst = 20
)

var traceparentName = []byte(headerTraceparent)

// newAskedTraces returns the limit of traces that callers ask for.
func newAskedTraces() *rate.Limiter { return rate.NewLimiter(askedTraces, askedTracesBurst) }

// requestTrace is the trace of a request.
type requestTrace struct {
	decided bool
	span    trace.Span // nil: the request is not traced
	ctx     context.Context
}

// traced decides whether a request is traced, once its caller is known, and begins its span.
// Requests that ask to wait and streams are not.
func (s *Server) traced(x *exchange) bool {
	t := s.cfg.Tracing
	if t == nil || x.trace.decided {
		return x.trace.span != nil
	}
	x.trace.decided = true
	if x.route == nil || x.route.Op == nil || x.waited {
		return false
	}
	parent, known := parseTraceparent(x.namedTrace())
	if !s.wantsTrace(x, parent, known) || x.streams() {
		return false
	}
	ctx := context.Background()
	if known {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	x.trace.ctx, x.trace.span = t.Tracer.Start(ctx, x.route.label, trace.WithTimestamp(x.start), trace.WithSpanKind(trace.SpanKindServer))
	return true
}

// namedTrace returns the trace that a request names in its header or, as a message to a session's tools, in the
// message. What another node sends is in the header.
func (x *exchange) namedTrace() []byte {
	header := x.ctx.Request.Header.PeekCanonical(traceparentName)
	if len(header) == 0 && x.message != nil && (x.conn == nil || !x.conn.peer) {
		return x.message.traceparent
	}
	return header
}

// wantsTrace reports whether a request is to be traced. Another node has decided already.
// The flag of a client counts if it has a valid credential, up to a rate; without the flag a
// traceparent says that the caller does not trace the request.
func (s *Server) wantsTrace(x *exchange, parent trace.SpanContext, known bool) bool {
	switch {
	case x.conn != nil && x.conn.peer:
		return known && parent.IsSampled()
	case known && !parent.IsSampled():
		return false
	case known && x.account != anonymousAccount && s.askedTraces.AllowN(x.start, 1):
		return true
	}
	return rand.Float64() < s.cfg.Tracing.Ratio
}

// parseTraceparent reads the header of W3C Trace Context, of version 00 or a later one.
func parseTraceparent(text []byte) (trace.SpanContext, bool) {
	const size = len("00-00112233445566778899aabbccddeeff-0011223344556677-00")
	if len(text) < size || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return trace.SpanContext{}, false
	}
	if later := string(text[:2]) != "00"; !later && len(text) != size || later && len(text) > size && text[size] != '-' {
		return trace.SpanContext{}, false
	}
	var id trace.TraceID
	var span trace.SpanID
	var version, flags [1]byte
	for _, part := range [...]struct{ to, from []byte }{{version[:], text[:2]}, {id[:], text[3:35]}, {span[:], text[36:52]}, {flags[:], text[53:55]}} {
		for _, c := range part.from {
			if 'A' <= c && c <= 'F' {
				return trace.SpanContext{}, false
			}
		}
		if _, err := hex.Decode(part.to, part.from); err != nil {
			return trace.SpanContext{}, false
		}
	}
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]), Remote: true})
	return c, c.IsValid() && version[0] != 0xff
}

// Traceparent returns the header by which the next hop joins a span.
func Traceparent(span trace.Span) string {
	c := span.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// beginForward begins the span of a try to have another node answer, which the node's own
// span joins; nil if the request is not traced.
func (t *forwarding) beginForward(node string) trace.Span {
	s, x := t.server, t.x
	if s.cfg.Tracing == nil {
		return nil
	}
	if t.waits > 0 {
		x.trace.decided = true // it is left out
	}
	if !s.traced(x) {
		return nil
	}
	_, span := s.cfg.Tracing.Tracer.Start(x.trace.ctx, "forward", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("switchyard.node", node)))
	t.sent.Header.Set(headerTraceparent, Traceparent(span))
	return span
}

// endForward ends the span of a try. The error is that of the connection.
func endForward(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, "no answer")
	}
	span.End()
}

// endTrace ends the span of a request that has its answer, and makes those of its parts.
func (s *Server) endTrace(x *exchange) {
	if x.parked || !s.traced(x) {
		return
	}
	now, span := s.now(), x.trace.span
	status := x.ctx.Response.StatusCode()
	span.SetAttributes(
		attribute.String("http.request.method", x.route.Method), attribute.String("http.route", x.route.Path),
		attribute.Int("http.response.status_code", status), attribute.String("switchyard.request_id", x.id),
	)
	if at := x.route.workspaceAt; at >= 0 {
		if _, ok := parseWorkspace(x.params[at]); ok {
			span.SetAttributes(attribute.String("switchyard.workspace", string(x.params[at])))
		}
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	s.partSpans(x, now)
	span.End(trace.WithTimestamp(now))
}

// partSpans makes the spans of the parts of a request from their measured times: those
// before the operation follow the beginning, and those of the engine lead up to the end.
func (s *Server) partSpans(x *exchange, now time.Time) {
	engine := x.spent.Engine
	if x.route.Op.Kind == tracker.Query && x.forwarded == 0 {
		// Queries run on this goroutine, and are not measured while they do.
		engine = max(0, now.Sub(x.start)-x.arrival-x.admission-x.ownerless-x.spent.Queue)
	}
	type part struct {
		name string
		took time.Duration
	}
	at := x.start
	for _, p := range [...]part{{"owner", x.ownerless}, {"admission", x.admission}, {"body", x.arrival}} {
		at = s.partSpan(x, p.name, at, p.took)
	}
	at = now.Add(-x.spent.Queue - engine - x.spent.Commit)
	for _, p := range [...]part{{"queue", x.spent.Queue}, {"engine", engine}, {"commit", x.spent.Commit}} {
		at = s.partSpan(x, p.name, at, p.took)
	}
}

// partSpan makes the span of a part, and returns its end. A part that took no time has none.
func (s *Server) partSpan(x *exchange, name string, at time.Time, took time.Duration) time.Time {
	if took <= 0 {
		return at
	}
	end := at.Add(took)
	_, span := s.cfg.Tracing.Tracer.Start(x.trace.ctx, name, trace.WithTimestamp(at))
	span.End(trace.WithTimestamp(end))
	return end
}
