package httpapi

import (
	"time"

	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
)

// Operations that take longer than Config.Slow are logged with where their time went. A node
// that forwards a request logs the time that the other node took as one figure; the other
// node logs the parts, under the same request id.

const (
	// slowLines bounds the lines of slow operations in a second, and slowBurst those that
	// may come at once: when everything is slow, the log must not make it slower.
	slowLines = 10
	slowBurst = 20
)

// slowLog writes the lines of slow operations.
type slowLog struct {
	lines *rate.Limiter
	left  chan int // holds the number of lines that were left out since the last one
}

func newSlowLog() *slowLog {
	l := &slowLog{lines: rate.NewLimiter(slowLines, slowBurst), left: make(chan int, 1)}
	l.left <- 0
	return l
}

// measures reports whether the parts of a request's time are measured: for the log of slow
// operations, and for traces.
func (s *Server) measures() bool { return s.cfg.Slow > 0 || s.cfg.Tracing != nil }

// noteSlow logs a request if it took long. Requests that waited because they asked to are
// not slow.
func (s *Server) noteSlow(x *exchange) {
	if s.cfg.Slow <= 0 || x.waited || x.route == nil || x.route.Op == nil {
		return
	}
	now := s.now()
	took := now.Sub(x.start)
	if took < s.cfg.Slow {
		return
	}
	s.metrics.slow.Inc()
	left := <-s.slow.left
	if !s.slow.lines.AllowN(now, 1) {
		s.slow.left <- left + 1
		return
	}
	s.slow.left <- 0
	if x.route.Op.Kind == tracker.Query && x.forwarded == 0 {
		// Queries run on this goroutine, and are not measured while they do.
		x.spent.Engine = max(0, took-x.arrival-x.admission-x.ownerless-x.spent.Queue)
	}
	attrs := []any{
		"request", x.id, "route", x.route.label, "status", x.ctx.Response.StatusCode(), "took", round(took), "body", round(x.arrival), "admission", round(x.admission),
		"queue", round(x.spent.Queue), "engine", round(x.spent.Engine), "commit", round(x.spent.Commit), "forward", round(x.forwarded), "owner", round(x.ownerless),
	}
	if at := x.route.workspaceAt; at >= 0 {
		if _, ok := parseWorkspace(x.params[at]); ok {
			attrs = append(attrs, "workspace", string(x.params[at]))
		}
	}
	if s.traced(x) {
		attrs = append(attrs, "trace", x.trace.span.SpanContext().TraceID().String())
	}
	if left > 0 {
		attrs = append(attrs, "left_out", left)
	}
	s.cfg.Logger.Warn("slow operation", attrs...)
}

// round shortens a duration for the log.
func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
