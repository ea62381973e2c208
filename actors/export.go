package actors

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
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

// exports counts the exports of this node. Each holds a snapshot, which keeps what is
// overwritten and deleted on the disk.
type exports struct {
	mu  sync.Mutex
	all int
	of  map[storage.ID]int
}

// enter counts an export of a workspace; false if there are too many. A workspace may
// have half of them, and one in any case.
func (x *exports) enter(workspace storage.ID, most int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all >= most || x.of[workspace] >= max(1, most/2) {
		return false
	}
	if x.of == nil {
		x.of = map[storage.ID]int{}
	}
	x.all++
	x.of[workspace]++
	return true
}

func (x *exports) leave(workspace storage.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all--
	if x.of[workspace]--; x.of[workspace] == 0 {
		delete(x.of, workspace)
	}
}

// export is an export that is being sent.
type export struct {
	engine   *Engine
	op       *tracker.Op
	req      tracker.Request
	shard    *shard
	snapshot *pebble.Snapshot
	lines    *tracker.Export
	checked  time.Time // when the rights were there
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
	if !e.exports.enter(req.Workspace, e.cfg.Limits.Exports) {
		s.work.leave()
		e.stats.refused[refusedExports].Add(1)
		return nil, tracker.NotApplied("Too many exports are being sent (--exports).")
	}
	x := &export{engine: e, op: op, shard: s, checked: time.Now()}
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
	if now := time.Now(); now.Sub(x.checked) > exportChecked {
		if err := x.check(now); err != nil {
			return nil, err
		}
	}
	return x.lines.Next()
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
	x.engine.exports.leave(x.req.Workspace)
	x.shard.work.leave()
}
