package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Move moves a workspace from one cluster to another, with everything in it: tokens, events, kept
// answers, timers and deliveries to be made. Its rows are copied while it is in use, then what has
// changed meanwhile, until that is little. Then the workspace becomes read-only, the rest follows,
// and the other cluster serves it.
type Move struct {
	From, To  *Client
	Workspace string
	// Where is what clients are told of the new place, as the reason of the read-only mode.
	Where string
	// Delete has the workspace deleted in its old place at the end.
	Delete bool
	// Progress is told of each step, and of the bytes copied in it so far; nil: nobody is.
	Progress func(step string, bytes int64)

	from    string        // id of the old cluster
	gone    bool          // the old cluster has no such workspace any more
	closed  bool          // this run, or an earlier one, has left the workspace read-only
	silence time.Duration // 0: Silence
}

// Moved is the result of a move.
type Moved struct {
	// Before is set if an earlier run had moved the workspace.
	Before bool
	Bytes  int64         // of rows that were copied
	Passes int           // over the rows
	Closed time.Duration // how long the workspace took no changes in its old place before it began in the new one
}

const (
	// settled is the number of bytes of a pass after which the workspace is closed: as many follow
	// in a small part of a second.
	settled = 256 << 10
	// mostPasses bounds the passes before the workspace is closed all the same.
	mostPasses = 20
	// mostStarts bounds how often the move begins anew since the log did not reach back.
	mostStarts = 5
)

var (
	// errAnew has a move begin anew.
	errAnew = errors.New("the copy in the new cluster has to begin anew")
	// errBehind says that the old place does not know any more what has changed since a pass.
	errBehind = fmt.Errorf("%w: the log of the old cluster does not reach back to the last pass", errAnew)
)

// Run moves the workspace. If it fails, the workspace stays in its old place and takes changes as
// before, unless the error says otherwise. A repeat begins anew, or finds that there is nothing left
// to do.
func (m *Move) Run(ctx context.Context) (*Moved, error) {
	before, err := m.check(ctx)
	if err != nil {
		return nil, err
	}
	moved := &Moved{Before: before}
	for starts := 1; !before; starts++ {
		err := m.attempt(ctx, moved)
		if err == nil {
			break
		}
		if !errors.Is(err, errAnew) || errors.Is(err, errStays) || errors.Is(err, errOther) || starts == mostStarts {
			return nil, err
		}
	}
	if m.gone {
		return moved, nil
	}
	if err := m.readOnly(ctx, m.From, movedTo); err != nil {
		return moved, fmt.Errorf("the workspace has moved; say so in its old place: %w", err)
	}
	if m.Delete {
		if err := m.From.do(ctx, http.MethodDelete, m.path("/workspaces/", ""), "", nil, nil); err != nil {
			return moved, fmt.Errorf("the workspace has moved; delete it in its old place: %w", err)
		}
	}
	return moved, nil
}

func (m *Move) path(prefix, rest string) string { return prefix + url.PathEscape(m.Workspace) + rest }

func (m *Move) arrivalPath(id string) string {
	return m.path("/cluster/workspaces/", "/arrival/"+url.PathEscape(id))
}

// check finds out whether the workspace can be moved, or was moved before.
func (m *Move) check(ctx context.Context) (before bool, err error) {
	from, err := m.From.cluster(ctx)
	if err != nil {
		return false, fmt.Errorf("read the state of the old cluster: %w", err)
	}
	m.from = from.ClusterID
	to, err := m.To.cluster(ctx)
	if err != nil {
		return false, fmt.Errorf("read the state of the new cluster: %w", err)
	}
	switch {
	case from.ClusterID == to.ClusterID:
		return false, errors.New("both addresses are of the same cluster")
	case from.Format > to.Format:
		return false, fmt.Errorf("the old cluster writes format %d, and the new one %d: upgrade the new one first", from.Format, to.Format)
	}
	arrived, err := m.shown(ctx)
	if err != nil {
		return false, err
	}
	mode, err := m.mode(ctx)
	switch {
	case refusedWith(err, http.StatusNotFound) && arrived.done() && arrived.Arrival.From == from.ClusterID:
		m.gone = true
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for the workspace: %w", err)
	case arrived.done() && arrived.Arrival.From != from.ClusterID:
		return false, errors.New("the new cluster has a workspace with this id, which came from another cluster")
	}
	m.closed = mode.Reason == m.reason(movingTo)
	left := m.closed || mode.Reason == m.reason(movedTo)
	switch {
	case !left && (strings.HasPrefix(mode.Reason, movingTo) || strings.HasPrefix(mode.Reason, movedTo)):
		// A move to another address may have ended there, and the mode may be the operator's own.
		return false, fmt.Errorf("the workspace is read-only (%s): if a move to that address has left it so, it may have begun there, so run that move again; otherwise lift the mode first", mode.Reason)
	case arrived.done() && !left:
		// A move leaves its old place read-only. This one was in use since, so the copy is older.
		return false, errors.New("the new cluster has a copy from an earlier move, and the workspace has been in use in the old one since: delete that copy first")
	case arrived.done():
		return true, nil
	case mode.Reason != "" && !m.closed:
		return false, fmt.Errorf("the workspace is read-only (%s): lift that first, so that it is not lost", mode.Reason)
	case !m.closed && (from.ahead-to.ahead).Abs() > clocksApart:
		return false, fmt.Errorf("the clocks of the two clusters differ by %s, and by more than %s leases and other times would not hold in the new one: set the clocks first", (from.ahead - to.ahead).Abs().Round(time.Second), clocksApart)
	}
	return false, nil
}

// shown returns the workspace's arrival in the new cluster; the zero one if there is none.
func (m *Move) shown(ctx context.Context) (at arrival, err error) {
	err = m.To.insist(ctx, http.MethodGet, m.path("/cluster/workspaces/", "/arrival"), "", nil, &at)
	if err != nil && !isMissing(err) {
		return at, fmt.Errorf("look for the workspace in the new cluster: %w", err)
	}
	return at, nil
}

// arrival is the answer about a workspace's arrival.
type arrival struct {
	Arrival struct {
		ID    string `json:"id"`
		From  string `json:"from"`
		State string `json:"state"`
	} `json:"arrival"`
}

func (a *arrival) done() bool { return a.Arrival.State == done }

func refusedWith(err error, status int) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Status == status
}

// isMissing reports whether the service itself, and not a proxy in front of it, has nothing at a path.
func isMissing(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound && refused.Code == "NOT_FOUND"
}

// attempt moves the workspace, or undoes what it has done.
func (m *Move) attempt(ctx context.Context, moved *Moved) (err error) {
	var begun arrival
	from := marshal(map[string]string{"from": m.from})
	if err := m.To.insist(ctx, http.MethodPost, m.path("/cluster/workspaces/", "/arrival"), "application/json", from, &begun); err != nil {
		if m.closed {
			err = fmt.Errorf("%w; an earlier run has left the workspace read-only in its old place: run the move again", err)
		}
		return fmt.Errorf("begin in the new cluster: %w", err)
	}
	doubt := false // the end was sent, and may have taken effect
	defer func() {
		if err != nil {
			err = m.undo(ctx, begun.Arrival.ID, doubt, err)
		}
	}()
	p := &passes{move: m, arrival: begun.Arrival.ID, moved: moved}
	for {
		bytes, err := p.pass(ctx, "copying")
		if err != nil {
			return err
		}
		if p.index > 0 && bytes < settled || p.done == mostPasses {
			break
		}
	}
	began := time.Now()
	if err := m.close(ctx); err != nil {
		return fmt.Errorf("make the workspace read-only: %w", err)
	}
	if _, err := p.pass(ctx, "closing"); err != nil {
		return err
	}
	if doubt, err = m.end(ctx, begun.Arrival.ID); err != nil {
		return err
	}
	moved.Closed = time.Since(began)
	return nil
}

// close makes the workspace read-only in its old place. It replaces no mode but one of a move to this address: the
// operator, or a move to another cluster, may have closed the workspace since this move began, and that move may
// have ended. A cluster of an older version takes no notice of the condition. There a mode stays that was
// set before it is read here.
func (m *Move) close(ctx context.Context) error {
	mode, err := m.mode(ctx)
	if err != nil {
		return err
	}
	header, tag := "If-None-Match", "*"
	switch mode.Reason {
	case "":
	case m.reason(movingTo):
		header, tag = "If-Match", mode.tag()
	default:
		m.closed = false
		return mode.another()
	}
	m.closed = true // also when the answer is lost
	if err = m.readOnly(ctx, m.From.onlyIf(header, tag), movingTo); !refusedWith(err, http.StatusPreconditionFailed) {
		return err
	}
	if mode, err = m.mode(ctx); err != nil || mode.Reason == m.reason(movingTo) { // an earlier try has set it
		return err
	}
	m.closed = false
	return mode.another()
}

// end has the workspace begin in the new cluster. With an error it reports whether the workspace may
// have begun there.
func (m *Move) end(ctx context.Context, id string) (doubt bool, err error) {
	// An interruption must not leave the question open.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryFor)
	defer cancel()
	if err := m.To.insist(ctx, http.MethodPost, m.arrivalPath(id)+"/end", "", nil, nil); err != nil {
		var refused *RefusedError
		doubt := !errors.As(err, &refused) || !refused.certain() || refused.tried
		return doubt, fmt.Errorf("begin in the new cluster: %w", err)
	}
	return false, nil
}
