package tracker

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// RetryIn says how often a session is tried, and after which ends.
type RetryIn struct {
	MaxAttempts       Opt[int64]    `json:"maxAttempts" rules:"min=1,max=20"`
	BackoffSeconds    Opt[int64]    `json:"backoffSeconds" rules:"min=0,max=86400"`
	MaxBackoffSeconds Opt[int64]    `json:"maxBackoffSeconds" rules:"nullable,min=0,max=31536000"`
	On                Opt[[]string] `json:"on" rules:"max=2" enum:"lapsed,failed"`
}

// RetryPolicy says how often a session is tried, and after which ends (Decision 62).
type RetryPolicy struct {
	MaxAttempts       int64    `json:"maxAttempts"`
	BackoffSeconds    int64    `json:"backoffSeconds"`
	MaxBackoffSeconds *int64   `json:"maxBackoffSeconds"`
	On                []string `json:"on"`
}

// The ends of attempts after which a session may be tried again.
const (
	retryLapsed = "lapsed"
	retryFailed = "failed"
)

const (
	// maxAttempts is the number of attempts at a session without a policy of its own.
	maxAttempts = 3
	// maxPause is the longest time that a session is kept from being claimed.
	maxPause = 365 * 24 * time.Hour
)

// retryPolicy returns the policy of a request, or nil if the request has none.
func retryPolicy(in *Opt[RetryIn]) *RetryPolicy {
	r := in.Ptr()
	if r == nil {
		return nil
	}
	p := &RetryPolicy{MaxAttempts: r.MaxAttempts.Or(maxAttempts), BackoffSeconds: r.BackoffSeconds.Value, MaxBackoffSeconds: r.MaxBackoffSeconds.Ptr(), On: []string{retryLapsed}}
	if r.On.Set {
		p.On = slices.Compact(slices.Sorted(slices.Values(r.On.Value)))
		if p.On == nil {
			p.On = []string{}
		}
	}
	return p
}

// retries reports whether the session is to be tried again after an attempt that ended
// in this way, and whether its attempts are used up.
func (s *sessionRecord) retries(end string) (again, usedUp bool) {
	p := s.Retry
	if p == nil {
		p = &RetryPolicy{MaxAttempts: maxAttempts, On: []string{retryLapsed}}
	}
	usedUp = int64(s.Inner.Attempts) >= p.MaxAttempts
	return !usedUp && slices.Contains(p.On, end), usedUp
}

// attemptsOf returns the number of attempts that the session may have.
func (s *sessionRecord) attemptsOf() int64 {
	if s.Retry == nil {
		return maxAttempts
	}
	return s.Retry.MaxAttempts
}

// backoff returns the time between the last attempt and the next: it doubles with each
// attempt, up to the policy's maximum.
func (s *sessionRecord) backoff() time.Duration {
	p := s.Retry
	if p == nil || p.BackoffSeconds == 0 {
		return 0
	}
	most := int64(maxPause / time.Second)
	if p.MaxBackoffSeconds != nil {
		most = min(most, *p.MaxBackoffSeconds)
	}
	wait := p.BackoffSeconds
	for n := 1; n < s.Inner.Attempts && wait < most; n++ {
		wait *= 2
	}
	return time.Duration(min(wait, most)) * time.Second
}

// tryAgain puts a session whose attempt has ended back into the queue, after its
// backoff.
func (c *sessionChange) tryAgain() error {
	if err := c.move(SessionCreated, byService); err != nil {
		return err
	}
	if wait := c.s.backoff(); wait > 0 {
		c.claimFrom(c.tx.now.Add(wait))
	}
	return nil
}

// claimFrom keeps the session from being claimed until a time.
func (c *sessionChange) claimFrom(at time.Time) {
	from := At(at)
	c.s.NotBefore = &from
}

// deadLetter fails a session whose attempts are used up.
func (c *sessionChange) deadLetter() error {
	if err := c.move(SessionFailed, byService); err != nil {
		return err
	}
	now := At(c.tx.now)
	c.s.DeadLetteredAt = &now
	c.tx.buffer.work.DeadLetters++
	c.events = append(c.events, eventSessionDeadLettered)
	return nil
}

// lapse ends the attempt of a claimer that did not renew its lease in time.
func (c *sessionChange) lapse() error {
	c.attemptEnd = AttemptLapsed
	c.tx.buffer.work.Lapses++
	message := fmt.Sprintf("The lease ran out in attempt %d of %d.", c.s.Inner.Attempts, c.s.attemptsOf())
	again, _ := c.s.retries(retryLapsed)
	var err error
	if again {
		err = c.tryAgain()
		message += " The session can be claimed again."
	} else {
		c.retireLanes() // the holder is presumed dead here, too
		err = c.deadLetter()
	}
	if err != nil {
		return err
	}
	return c.logActivity(ActivityError, message)
}

// failed ends the attempt of a session that was reported to have failed: the session is
// tried again, is a dead letter, or fails for good. hash is that of the report.
func (c *sessionChange) failed(in *ReportSessionIn, hash []byte) error {
	s := &c.s
	s.FailureReason = in.FailureReason.Ptr()
	c.attemptEnd = AttemptFailed
	again, usedUp := s.retries(retryFailed)
	held := s.Inner.Lease != nil
	retryable := held && in.Retryable.Or(true)
	if !again || !retryable {
		s.Inner.Final = hash
		if retryable && usedUp && s.retriesFailures() {
			return c.deadLetter()
		}
		return c.move(SessionFailed, byCaller)
	}
	message := fmt.Sprintf("Failed in attempt %d of %d", s.Inner.Attempts, s.attemptsOf())
	if reason := s.FailureReason; reason != nil {
		message += " (" + *reason + ")"
	}
	message += "."
	if text := s.Result; text != nil && *text != "" {
		message += " " + shorten(*text, maxRetold)
	}
	// The next attempt has none of the results that this one reported.
	s.Result, s.StructuredResult, s.ResultSchemaErrors = nil, nil, nil
	s.Inner.Retried, s.Inner.RetriedBy = hash, c.tx.Caller.ID
	if err := c.tryAgain(); err != nil {
		return err
	}
	return c.logActivity(ActivityError, message)
}

// repeatsFailure reports whether a report, of which this is the hash, is a repeat of the failure
// after which the session was queued again. It must not end the attempt of another claimer. A
// claimer that fails again in the same way is not told apart by the hash, only by its claim.
func (tx *Tx) repeatsFailure(s *sessionRecord, hash []byte) bool {
	in := &s.Inner
	if !bytes.Equal(in.Retried, hash) {
		return false
	}
	again := tx.Caller.Lane == nil && tx.Caller.ID == in.RetriedBy
	switch last := in.Attempt; {
	case s.Status == SessionCreated:
		return again || last == nil || last.End == AttemptFailed // not claimed since
	case in.Lease != nil || in.Wait != nil:
		return again && last != nil && last.ClaimerID != tx.Caller.ID
	}
	return false
}

// maxRetold limits the part of a failed attempt's result that is kept in the log, in
// bytes.
const maxRetold = 2 << 10

// retriesFailures reports whether the session's policy is to try again after failures.
func (s *sessionRecord) retriesFailures() bool {
	return s.Retry != nil && slices.Contains(s.Retry.On, retryFailed)
}
