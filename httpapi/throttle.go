package httpapi

import (
	"errors"

	"switchyard/actors/tracker"
)

// throttle counts a request of a caller nobody knows against its address's rate. A
// request without a valid credential counts, whether it needs one or not.
func (s *Server) throttle(x *exchange) error {
	if s.anonymous == nil {
		return nil
	}
	addr := sharer(s.client(x))
	if !addr.IsValid() {
		return nil
	}
	v := s.anonymous.take(addr.String(), x.start)
	if x.rated, x.verdict = true, v; v.retry == 0 {
		return nil
	}
	s.metrics.refuse(boundAnonymous)
	return &tracker.Error{
		Code: tracker.CodeTooManyRequests, Message: "The client's address has sent more requests without a valid credential than " + boundAnonymous + " allows.",
		Hint: "Wait as long as Retry-After says, and send a valid credential where one is needed.", RetryAfter: v.retry,
	}
}

// denied is the answer to a request that was not admitted. Past the address's rate a
// credential that is not valid gets 429, and the connection ends.
func (s *Server) denied(x *exchange, err error) error {
	var told *tracker.Error
	if !errors.As(err, &told) || told.Code != tracker.CodeUnauthorized {
		return err
	}
	if x.conn != nil {
		x.conn.known.Store(false)
		if x.conn.kept != keptForNobody {
			x.ends = true
		}
	}
	if limited := s.throttle(x); limited != nil {
		x.ends = true
		return limited
	}
	return err
}

// throttleCreation counts a request that makes a workspace, against the rates of its address
// and of the user who sends it. Known callers have buckets of their own, so that
// strangers can't use up the rate of an address that they share.
func (s *Server) throttleCreation(x *exchange, caller *tracker.Caller) error {
	op := x.route.Op
	if s.onboarding == nil || x.account == operatorAccount || !op.Onboarding && op != tracker.CreateWorkspace {
		return nil
	}
	rates := s.founders
	if x.account == anonymousAccount {
		rates = s.onboarding
	}
	counted := make([]string, 0, 2)
	if addr := sharer(s.client(x)); addr.IsValid() {
		counted = append(counted, addr.String())
	}
	if caller.ID != "" {
		counted = append(counted, "user "+caller.ID)
	}
	for _, key := range counted {
		v := rates.take(key, x.start)
		if v.retry == 0 {
			continue
		}
		s.metrics.refuse(boundOnboarding)
		x.rated, x.verdict = true, v
		return &tracker.Error{
			Code: tracker.CodeTooManyRequests, Message: "More workspaces were asked for than " + boundOnboarding + " allows an address or a user.",
			Hint: "Wait as long as Retry-After says, or have the operator make the workspace.", RetryAfter: v.retry,
		}
	}
	return nil
}
