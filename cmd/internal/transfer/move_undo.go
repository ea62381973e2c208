package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// tidyWithin bounds the time to undo what a failed move has done, and half of it the first step. The
// old place is opened soon after the new cluster has said that the workspace has not begun, or not at
// all: a later run may have moved the workspace meanwhile.
const tidyWithin = 20 * time.Second

// The reasons of the read-only mode in the old place begin with these; see reason.
const (
	movingTo = "Moving to "
	movedTo  = "Moved to "
)

// mostReason bounds a reason in bytes.
const mostReason = 500

var (
	// errStays says that the old place is left read-only.
	errStays = errors.New("the workspace may have begun there, so it stays read-only in its old place: run the move again")
	// errOther says that the new cluster has the arrival of another run.
	errOther = errors.New("another run of the move has taken over")
)

// undo gives up the arrival of a move that has failed with an error, and opens the old place if it is
// closed. The new cluster comes first: it alone shows whether the workspace has begun, by this run or
// another one, and an arrival that was given up never begins. Without its clear answer the old place stays
// closed, or both would take changes. doubt is set if the end was sent and may have taken effect.
func (m *Move) undo(ctx context.Context, id string, doubt bool, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyWithin)
	defer cancel()
	var mode readOnlyMode
	var left error
	if m.closed {
		mode, left = m.mode(ctx)
	}
	if left == nil {
		left = m.abandon(ctx, id, doubt)
	}
	switch {
	case left == nil && m.closed:
		if err := m.open(ctx, mode); err != nil {
			return errors.Join(failed, err)
		}
		m.closed = false
		return failed
	case left == nil:
		return failed
	case m.closed:
		return fmt.Errorf("%w\nremove the copy in the new cluster: %w; %w", failed, left, errStays)
	case errors.Is(left, errOther):
		return errors.Join(failed, left)
	}
	return errors.Join(failed, fmt.Errorf("remove the copy in the new cluster, which ends by itself after an hour: %w", left))
}

// abandon gives up the arrival in the new cluster. It returns nil if the workspace has not begun there
// and no other run has it arrive. With doubt an arrival that is missing does not show that: the
// workspace may have begun and been deleted since.
func (m *Move) abandon(ctx context.Context, id string, doubt bool) error {
	ctx, cancel := context.WithTimeout(ctx, tidyWithin/2)
	defer cancel()
	err := m.To.insist(ctx, http.MethodDelete, m.arrivalPath(id), "", nil, nil)
	if !isMissing(err) {
		return err
	}
	at, err := m.shown(ctx)
	switch {
	case err != nil:
		return err
	case at.Arrival.ID == "" && doubt:
		return errors.New("the arrival is not there any more")
	case at.Arrival.ID == "":
		return nil
	case at.Arrival.ID != id:
		return errOther
	case at.done():
		return errors.New("the workspace has arrived")
	}
	// A cluster of an older version knows no path for one arrival.
	return m.To.insist(ctx, http.MethodDelete, m.path("/cluster/workspaces/", "/arrival"), "", nil, nil)
}

// reason returns the reason of the read-only mode of a move to this address. A mode with another one is that
// of a move to another place, or the operator's own.
func (m *Move) reason(begin string) string {
	text := begin + m.Where
	return text[:min(len(text), mostReason)]
}

// readOnly sets the read-only mode in the old place; from may have a condition.
func (m *Move) readOnly(ctx context.Context, from *Client, begin string) error {
	body := marshal(map[string]string{"reason": m.reason(begin)})
	return from.insist(ctx, http.MethodPut, m.path("/cluster/workspaces/", "/read-only"), "application/json", body, nil)
}

// readOnlyMode is the read-only mode of the old place; the zero one if there is none.
type readOnlyMode struct {
	Reason    string `json:"reason"`
	CreatedAt string `json:"createdAt"`
}

// tag returns the ETag of the mode.
func (r readOnlyMode) tag() string { return strconv.Quote(r.CreatedAt) }

// another returns the error for a mode that is not of this move.
func (r readOnlyMode) another() error {
	if r.Reason == "" {
		return errors.New("the mode was set and ended meanwhile: run the move again")
	}
	return fmt.Errorf("it has become read-only meanwhile (%s), and stays so", r.Reason)
}

// mode returns the read-only mode of the old place.
func (m *Move) mode(ctx context.Context) (readOnlyMode, error) {
	var shown struct {
		ReadOnly readOnlyMode `json:"readOnly"`
	}
	err := m.From.insist(ctx, http.MethodGet, m.path("/cluster/workspaces/", "/read-only"), "", nil, &shown)
	if err != nil {
		return readOnlyMode{}, fmt.Errorf("read the read-only mode of the old place: %w", err)
	}
	return shown.ReadOnly, nil
}

// open ends a read-only mode of this move in the old place. Another run that has closed the old place since
// the mode was read has begun a mode of its own, which stays.
func (m *Move) open(ctx context.Context, mode readOnlyMode) error {
	if mode.Reason != m.reason(movingTo) {
		return nil
	}
	err := m.From.onlyIf("If-Match", mode.tag()).insist(ctx, http.MethodDelete, m.path("/cluster/workspaces/", "/read-only"), "", nil, nil)
	if refusedWith(err, http.StatusPreconditionFailed) {
		now, failed := m.mode(ctx)
		switch {
		case failed != nil:
			err = failed
		case now == (readOnlyMode{}): // an earlier try has ended it
			err = nil
		default:
			err = errOther
		}
	}
	if err != nil {
		return fmt.Errorf("end the read-only mode in the old place: %w", err)
	}
	return nil
}
