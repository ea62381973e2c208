package actors

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

const (
	// exportChecked is the time for which an export goes on before the caller's rights are
	// looked at again.
	exportChecked = time.Second
	// exportDoubt is the time for which an export goes on while they can't be looked at.
	exportDoubt = 10 * time.Second
)

// export is an export that is being sent.
type export struct {
	engine   *Engine
	op       *tracker.Op
	req      tracker.Request
	shard    *shard
	snapshot *pebble.Snapshot
	lines    *tracker.Export
	checked  time.Time   // when the rights were there
	slot     *exportSlot // nil for the operator
}

// Export begins the export of a workspace for an admitted request, as of now. The caller
// closes it. It has no deadline: the request's is for the answer to begin.
func (e *Engine) Export(req *tracker.Request, op *tracker.Op, in any) (tracker.Lines, error) {
	asked, ok := in.(*tracker.ExportIn)
	if !ok || !op.Lines {
		return nil, fmt.Errorf("operation %s has no lines", op.Name)
	}
	if err := req.Admitted(op); err != nil {
		return nil, e.clientError(req, op, err)
	}
	s := e.shardOf(req.Workspace)
	if !s.work.enter() {
		return nil, errClosing()
	}
	x := &export{engine: e, op: op, shard: s, checked: time.Now()}
	if !x.takePlace(req) {
		s.work.leave()
		return nil, tracker.NotApplied("Too many exports are being sent (--exports).")
	}
	x.req = tracker.Request{ID: req.ID, Workspace: req.Workspace, Credential: req.Credential, Caller: req.Caller}
	if _, err := e.readable(s.number, req.Deadline); err != nil {
		x.Close()
		return nil, err
	}
	x.snapshot = e.state.NewSnapshot()
	view := tracker.NewView(storage.NewView(x.snapshot, s.number, req.Workspace), &x.req.Caller, e.now(), nil)
	view.Configure(&e.cfg.Agents)
	x.lines = tracker.NewExport(view, asked)
	if there, err := view.Founded(); err != nil || !there {
		x.Close()
		if err == nil {
			err = op.NoWorkspace()
		}
		return nil, e.clientError(req, op, err)
	}
	return x, nil
}

// takePlace takes a place among the exports. The operator needs none, nor does a request for the head alone.
func (x *export) takePlace(req *tracker.Request) bool {
	if req.Caller.Root || req.HeadOnly {
		return true
	}
	e := x.engine
	slot, end := e.exports.enter(req.Workspace, e.cfg.Limits.Exports, time.Now())
	if slot == nil || end != nil {
		e.stats.refused[refusedExports].Add(1)
	}
	if end != nil {
		end()
	}
	x.slot = slot
	return slot != nil
}

// OnEnd implements tracker.EndingLines.
func (x *export) OnEnd(end func()) {
	if x.slot != nil {
		x.engine.exports.onEnd(x.slot, end)
	}
}

// Next implements tracker.Lines.
func (x *export) Next() (block []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tracker.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if x.engine.closing.Load() {
		return nil, errClosing()
	}
	now := time.Now()
	if now.Sub(x.checked) > exportChecked {
		if err := x.check(now); err != nil {
			return nil, err
		}
	}
	if x.slot == nil {
		return x.lines.Next()
	}
	x.engine.exports.taken(x.slot, now)
	block, err = x.lines.Next()
	x.engine.exports.sends(x.slot, len(block), time.Now())
	return block, err
}

// check returns an error if the caller may not read the workspace any more.
func (x *export) check(now time.Time) error {
	req := tracker.Request{ID: x.req.ID, Workspace: x.req.Workspace, Credential: x.req.Credential, Deadline: now.Add(2 * time.Second)}
	err := x.engine.Admit(&req, x.op)
	switch {
	case err == nil:
		x.checked = now
	case outcome(err) == "" || now.Sub(x.checked) > exportDoubt:
		return fmt.Errorf("check the rights to an export: %w", err)
	}
	return nil
}

// Close implements tracker.Lines.
func (x *export) Close() {
	if x.snapshot != nil {
		if err := x.snapshot.Close(); err != nil && !errors.Is(err, pebble.ErrClosed) {
			x.engine.log.Error("close a snapshot", "error", err)
		}
	}
	if x.slot != nil {
		x.engine.exports.leave(x.slot)
	}
	x.shard.work.leave()
}
