package httpapi

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
)

// workspaceRates holds a token bucket for each workspace with a limit on requests that sent
// some lately. A second's requests may come at once.
type workspaceRates struct {
	mu        sync.Mutex
	of        map[[16]byte]*rate.Limiter
	nextSweep time.Time // when a full table is swept again
}

// take counts a request of a workspace. counted is false if there is no bucket for it: then the
// request is let through.
func (w *workspaceRates) take(workspace [16]byte, perSecond uint64, now time.Time) (v verdict, counted bool) {
	if perSecond == 0 {
		return verdict{reset: 1, retry: time.Second}, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	burst := int(min(perSecond, math.MaxInt32))
	b := w.of[workspace]
	switch {
	case b == nil:
		if len(w.of) >= maxBuckets && !now.Before(w.nextSweep) {
			w.sweep(now)
		}
		if len(w.of) >= maxBuckets {
			return verdict{}, false // as for credentials, see maxBuckets
		}
		if w.of == nil {
			w.of = map[[16]byte]*rate.Limiter{}
		}
		b = rate.NewLimiter(rate.Limit(burst), burst)
		w.of[workspace] = b
	case b.Burst() != burst: // the operator has changed the limit
		b.SetLimitAt(now, rate.Limit(burst))
		b.SetBurstAt(now, burst)
	}
	return takeFrom(b, now), true
}

// sweep drops the buckets that are full again.
func (w *workspaceRates) sweep(now time.Time) {
	for workspace, b := range w.of {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(w.of, workspace)
		}
	}
	w.nextSweep = now.Add(sweepEvery)
}

// limitWorkspace counts the request against the rate of its workspace (Decision 70). The
// operator has none, and requests that free room are not counted.
func (s *Server) limitWorkspace(x *exchange, req *tracker.Request) error {
	caller := &req.Caller
	perSecond := s.cfg.WorkspaceRequests
	if own := caller.RequestsPerSecond; own != nil {
		perSecond = uint64(*own)
	} else if perSecond == 0 {
		return nil
	}
	if caller.Root || caller.Level == tracker.Public || x.route.Op.Space >= tracker.FreesSpace {
		return nil
	}
	v, counted := s.workspaces.take(req.Workspace, perSecond, x.start)
	if !counted {
		return nil
	}
	x.rate(v)
	if v.retry == 0 {
		return nil
	}
	return &tracker.Error{
		Code: tracker.CodeTooManyRequests, Message: "The workspace has sent more than " + tracker.Counted(perSecond, "request", "requests") + " in a second.",
		Hint:       "Wait as long as Retry-After says, and spread the requests. The operator sets the limit for the workspace, or with --limit-requests-per-second for all.",
		Details:    tracker.LimitDetails{Limit: tracker.LimitRequestsPerSecond, Max: perSecond},
		RetryAfter: v.retry,
	}
}
