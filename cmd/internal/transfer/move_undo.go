package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// tidyWithin bounds the time to undo what a failed move has done, and half of it the first step. The
// old place is opened soon after the new cluster has said that the workspace has not begun, or not at
// all: a later run may have moved the workspace meanwhile.
const tidyWithin = 20 * time.Second

// The reasons of the read-only mode in the old place.
const (
	movingTo = "Moving to "
	movedTo  = "Moved to "
)

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
	left := m.abandon(ctx, id, doubt)
	switch {
	case left == nil && m.closed:
		if err := m.open(ctx); err != nil {
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

// readOnly sets the read-only mode in the old place.
func (m *Move) readOnly(ctx context.Context, reason string) error {
	body := marshal(map[string]string{"reason": reason[:min(len(reason), 500)]})
	return m.From.insist(ctx, http.MethodPut, m.path("/cluster/workspaces/", "/read-only"), "application/json", body, nil)
}

// open ends the read-only mode in the old place.
func (m *Move) open(ctx context.Context) error {
	err := m.From.insist(ctx, http.MethodDelete, m.path("/cluster/workspaces/", "/read-only"), "", nil, nil)
	if err != nil {
		return fmt.Errorf("end the read-only mode in the old place: %w", err)
	}
	return nil
}
