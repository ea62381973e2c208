package actors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// flow is one run of a workflow, on its caller's goroutine.
type flow struct {
	engine *Engine
	req    *tracker.Request
	now    time.Time
	// changed is set once a step was, or may have been, applied.
	changed bool
	// lasting is set if the workflow may take longer than a request, so each step has
	// the deadline of one, and its queries rest in turns with their work.
	lasting bool
}

var _ tracker.Flow = (*flow)(nil)

func (e *Engine) workflow(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	e.stats.workflows.Add(1)
	f := &flow{engine: e, req: req, now: e.now(), lasting: op.LongRunning}
	reply, err := f.run(op, in)
	if err == nil {
		return reply, nil
	}
	if f.changed && outcome(err) == "not_applied" {
		// The failed step changed nothing, but an earlier one did.
		var step *tracker.Error
		errors.As(err, &step)
		err = unknownAfter(step, step.Message)
	}
	return tracker.Reply{}, e.clientError(req, op, err)
}

func (f *flow) run(op *tracker.Op, in any) (reply tracker.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tracker.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return op.RunFlow(f, in)
}

func (f *flow) Request() *tracker.Request { return f.req }

func (f *flow) Now() time.Time { return f.now }

// NewID returns a UUIDv7 of the flow's time, with a fraction of the millisecond (RFC
// 9562, section 6.2, method 3). Its order is as good as the clock; ids of workflows
// need no exact order.
func (f *flow) NewID() storage.ID {
	var id storage.ID
	f.Secret(id[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(f.now.UnixMilli()))
	copy(id[:6], ms[2:])
	fraction := f.now.Nanosecond() % 1e6 * 4096 / 1e6
	id[6], id[7] = 0x70|byte(fraction>>8), byte(fraction)
	id[8] = id[8]&0x3f | 0x80
	return id
}

func (f *flow) Secret(b []byte) {
	if _, err := io.ReadFull(f.engine.cfg.Random, b); err != nil {
		// Guessable credentials would be worse than a failed request.
		panic(fmt.Errorf("read randomness: %w", err))
	}
}

func (f *flow) Inbound() *tracker.InboundSettings { return &f.engine.cfg.Inbound }

func (f *flow) Shards() int { return f.engine.replicator.Shards() }

func (f *flow) Query(workspace storage.ID, op *tracker.Op, in any) (tracker.Reply, error) {
	return f.step(f.timed(f.req.Look(workspace)), op, in)
}

func (f *flow) Command(permit tracker.Permit, workspace storage.ID, op *tracker.Op, in any) (tracker.Reply, error) {
	return f.step(f.timed(f.req.Step(permit, workspace)), op, in)
}

// timed sets the deadline of a step of a lasting workflow.
func (f *flow) timed(step *tracker.Request) *tracker.Request {
	if f.lasting {
		step.Deadline = time.Now().Add(f.engine.cfg.Limits.Answer)
	}
	return step
}

func (f *flow) CommandAs(permit tracker.Permit, caller tracker.Caller, workspace storage.ID, op *tracker.Op, in any) (tracker.Reply, error) {
	return f.step(f.req.StepAs(permit, caller, workspace), op, in)
}

func (f *flow) step(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	if f.lasting && op.Kind == tracker.Query {
		turn := f.engine.indexing.begin(req.Workspace, op == tracker.BuildSegment)
		if turn == nil {
			return tracker.Reply{}, errClosing()
		}
		began := time.Now()
		defer func() { f.engine.indexing.end(turn, time.Since(began)) }()
	}
	req.Spent = tracker.Spent{On: f.req.Spent.On}
	reply, err := f.engine.step(req, op, in)
	f.req.Spent.Add(req.Spent)
	if op.Kind != tracker.Query && (err == nil || outcome(err) == "unknown") {
		f.changed = true
	}
	return reply, err
}
