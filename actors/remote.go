package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Remote reaches the engines of other nodes, for the steps of workflows and for
// credentials stored in workspaces that other nodes serve.
type Remote interface {
	// Call passes a request to ServeCall of the node that owns a shard, and returns the
	// answer. If an error has a method NotApplied() bool, the method reports whether
	// the request certainly did not arrive.
	Call(ctx context.Context, shard storage.Shard, body []byte) ([]byte, error)
	// OwnerDue returns until when a request waits that has found no owner of a shard since
	// missing, at the latest. It counts from the loss of the owner, so that later requests fail
	// at once.
	OwnerDue(shard storage.Shard, missing time.Time) time.Time
}

// stepCall is a step in the form in which it is sent to another node.
type stepCall struct {
	Op          string               `json:"op"`
	Request     string               `json:"request"` // the request's X-Request-Id
	Address     netip.Addr           `json:"address"` // the client's
	Workspace   storage.ID           `json:"workspace"`
	Caller      stepCaller           `json:"caller"`
	Permit      tracker.Permit       `json:"permit"`
	Idempotency *tracker.Idempotency `json:"idempotency,omitempty"`
	Seal        []byte               `json:"seal,omitempty"` // tracker.SealKey
	TimeLeft    time.Duration        `json:"timeLeft"`
	In          json.RawMessage      `json:"in"`
}

// stepCaller is a tracker.Caller in a form for JSON.
type stepCaller struct {
	Principal tracker.Principal `json:"principal"`
	Role      tracker.Role      `json:"role"`
	Level     tracker.Level     `json:"level"`
	Hidden    []storage.ID      `json:"hidden,omitempty"`
	Teams     []storage.ID      `json:"teams,omitempty"`
	Joined    tracker.Timestamp `json:"joined,omitempty"`
	Importing bool              `json:"importing,omitempty"`
	Maker     *stepCaller       `json:"maker,omitempty"`
	Rate      *int64            `json:"rate,omitempty"` // tracker.Caller.RequestsPerSecond
}

func sendCaller(c *tracker.Caller) stepCaller {
	sent := stepCaller{
		Principal: c.Principal, Role: c.Role, Level: c.Level,
		Hidden: slices.Collect(maps.Keys(c.Hidden)), Teams: slices.Collect(maps.Keys(c.Teams)), Joined: c.Joined,
		Importing: c.Importing, Rate: c.RequestsPerSecond,
	}
	if c.Maker != nil {
		maker := sendCaller(c.Maker)
		sent.Maker = &maker
	}
	return sent
}

func (s *stepCaller) caller() tracker.Caller {
	c := tracker.Caller{Principal: s.Principal, Role: s.Role, Level: s.Level, Hidden: teamSet(s.Hidden), Teams: teamSet(s.Teams), Joined: s.Joined, Importing: s.Importing, RequestsPerSecond: s.Rate}
	if s.Maker != nil {
		maker := s.Maker.caller()
		c.Maker = &maker
	}
	return c
}

func teamSet(list []storage.ID) map[storage.ID]struct{} {
	if len(list) == 0 {
		return nil
	}
	set := make(map[storage.ID]struct{}, len(list))
	for _, team := range list {
		set[team] = struct{}{}
	}
	return set
}

// stepAnswer is the result of a step: a reply or an error.
type stepAnswer struct {
	Reply *tracker.Reply `json:"reply,omitempty"`
	Error *stepError     `json:"error,omitempty"`
}

// stepError is a tracker.Error with the fields that clients don't see.
type stepError struct {
	tracker.Error
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	Moved      bool          `json:"moved,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	ReadOnly   string        `json:"readOnly,omitempty"`
	Unadmitted bool          `json:"unadmitted,omitempty"`
	// Outcome replaces the details of UNAVAILABLE, whose type JSON does not keep.
	Outcome string `json:"outcome,omitempty"`
}

const (
	// stepRetryFirst and stepRetryMost are the shortest and longest pause before a step
	// is sent again.
	stepRetryFirst = 5 * time.Millisecond
	stepRetryMost  = 100 * time.Millisecond
)

// elsewhere reports whether another node serves a step's shard, as far as this node
// knows: it does not own it.
func (e *Engine) elsewhere(shard storage.Shard) bool {
	if e.cfg.Remote == nil {
		return false
	}
	_, here := e.replicator.Owner(shard)
	return !here
}

// step runs an operation at the node that serves its shard. For a while it retries a
// step that changed nothing because the shard had moved.
func (e *Engine) step(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	if e.cfg.Remote == nil {
		return e.do(req, op, in)
	}
	shard := e.shardOf(target(req, op)).number
	began := time.Now()
	pause := stepRetryFirst
	for {
		var reply tracker.Reply
		var err error
		if e.elsewhere(shard) {
			reply, err = e.callRemote(req, op, in, shard)
		} else {
			reply, err = e.do(req, op, in)
		}
		var failure *tracker.Error
		if err == nil || !errors.As(err, &failure) || !failure.Moved || !time.Now().Before(e.cfg.Remote.OwnerDue(shard, began)) || time.Until(req.Deadline) <= pause {
			return reply, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-e.stopped.Done():
			timer.Stop()
			return tracker.Reply{}, errClosing()
		}
		pause = min(2*pause, stepRetryMost)
	}
}

// callRemote sends a step to the node that serves its shard.
func (e *Engine) callRemote(req *tracker.Request, op *tracker.Op, in any, shard storage.Shard) (tracker.Reply, error) {
	if tracker.StepOps[op.Name] != op {
		return tracker.Reply{}, errNotServed()
	}
	e.stats.remote.Add(1)
	input, err := json.Marshal(in)
	if err != nil {
		return tracker.Reply{}, fmt.Errorf("send %s: %w", op.Name, err)
	}
	c := stepCall{
		Op: op.Name, Request: req.ID, Address: req.Address, Workspace: req.Workspace, Caller: sendCaller(&req.Caller), Permit: req.Permit(),
		Idempotency: req.Idempotency, TimeLeft: time.Until(req.Deadline), In: input,
	}
	if op.Secret && req.Idempotency != nil {
		if c.Seal, err = tracker.SealKey(req); err != nil {
			return tracker.Reply{}, fmt.Errorf("send %s: %w", op.Name, err)
		}
	}
	body, err := json.Marshal(&c)
	if err != nil {
		return tracker.Reply{}, fmt.Errorf("send %s: %w", op.Name, err)
	}
	ctx, cancel := context.WithDeadline(e.stopped, req.Deadline)
	defer cancel()
	answer, err := e.cfg.Remote.Call(ctx, shard, body)
	if err != nil {
		if op.Kind == tracker.Query || certainlyNotApplied(err) {
			return tracker.Reply{}, errNotServed()
		}
		return tracker.Reply{}, tracker.OutcomeUnknown("A node that serves a part of the request did not answer.")
	}
	var a stepAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return tracker.Reply{}, fmt.Errorf("read the answer of %s: %w", op.Name, err)
	}
	switch {
	case a.Error != nil:
		return tracker.Reply{}, a.Error.clientError()
	case a.Reply == nil:
		return tracker.Reply{}, fmt.Errorf("the answer of %s is empty", op.Name)
	}
	return *a.Reply, nil
}

// clientError returns the error as the operation returned it.
func (s *stepError) clientError() *tracker.Error {
	err := s.Error
	err.RetryAfter, err.Moved, err.Reason, err.ReadOnly, err.Unadmitted = s.RetryAfter, s.Moved, s.Reason, s.ReadOnly, s.Unadmitted
	if s.Outcome != "" {
		err.Details = tracker.OutcomeDetails{Outcome: s.Outcome}
	}
	return &err
}

// ServeCall answers another node's Call. It returns an error only if the request can't
// be decoded.
func (e *Engine) ServeCall(ctx context.Context, body []byte) ([]byte, error) {
	var c stepCall
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("read a step: %w", err)
	}
	op := tracker.StepOps[c.Op]
	if op == nil {
		return nil, fmt.Errorf("there is no step %q: do all nodes run the same version?", c.Op)
	}
	in := op.New()
	if err := json.Unmarshal(c.In, in); err != nil {
		return nil, fmt.Errorf("read the input of %s: %w", c.Op, err)
	}
	req := tracker.SentStep(&tracker.Request{
		ID: c.Request, Address: c.Address, Workspace: c.Workspace, Caller: c.Caller.caller(), Idempotency: c.Idempotency, Seal: c.Seal,
		Deadline: time.Now().Add(min(max(c.TimeLeft, 0), e.cfg.Limits.Answer)),
	}, c.Permit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(req.Deadline) {
		req.Deadline = deadline
	}
	reply, err := e.Do(req, op, in)
	if err != nil {
		failure := e.stepError(&c, err)
		return json.Marshal(stepAnswer{Error: failure})
	}
	return json.Marshal(stepAnswer{Reply: &reply})
}

// stepError returns an error in the form in which it is sent. It logs an internal error
// here, where it happened.
func (e *Engine) stepError(c *stepCall, err error) *stepError {
	var failure *tracker.Error
	if !errors.As(err, &failure) {
		e.log.Error("a step for another node failed", "operation", c.Op, "request", c.Request, "error", err)
		failure = &tracker.Error{Code: tracker.CodeInternal, Message: "The service failed to carry out a part of the request.", Hint: "Report the request id to the operator if it happens again."}
	}
	s := &stepError{Error: *failure, RetryAfter: failure.RetryAfter, Moved: failure.Moved, Reason: failure.Reason, ReadOnly: failure.ReadOnly, Unadmitted: failure.Unadmitted, Outcome: outcome(failure)}
	return s
}
