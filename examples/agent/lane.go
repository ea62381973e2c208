package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// claimed is the answer to a claim: the session, its issue, and the way into its lane.
// The addresses it also has are where l.path leads.
type claimed struct {
	Session struct {
		ID string `json:"id"`
	} `json:"session"`
	Issue struct {
		Identifier  string  `json:"identifier"`
		Title       string  `json:"title"`
		Description *string `json:"description"`
	} `json:"issue"`
	Instructions *string `json:"instructions"`
	LaneToken    string  `json:"laneToken"`
	// Checkpoint is what an earlier claimer stored; null without one.
	Checkpoint json.RawMessage `json:"checkpoint"`
	// Predecessors are the sessions that this one was queued after.
	Predecessors []struct {
		SessionID string  `json:"sessionId"`
		Result    *string `json:"result"`
	} `json:"predecessors"`
}

// lane is a session that this process has claimed. Its token opens this session and
// nothing else.
type lane struct {
	*client
	claimed
	lease time.Duration
	until time.Time // when the lease ends, by our clock; owned by keep
}

// newLane takes a claim that has just come. By our clock its lease may have begun a
// while ago, so keep begins by renewing it.
func newLane(c *client, job claimed, lease time.Duration) *lane {
	return &lane{client: c, claimed: job, lease: lease, until: time.Now().Add(lease)}
}

// errLost is why work ends on a session that is not ours any more.
var errLost = errors.New("the session is no longer ours")

// call is do in the lane; see request.
func (l *lane) call(ctx context.Context, path string, body, out any) error {
	return l.request(ctx, http.MethodPost, path, body, out)
}

// request is send in the lane. Four answers mean that there is nothing left to do here:
// the lease ran out and somebody else may have the session (409), the session is
// over (401), or it can't be found (404, 410).
func (l *lane) request(ctx context.Context, method, path string, body, out any) error {
	err := l.send(ctx, method, l.LaneToken, path, body, out)
	var refused *refusal
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusGone:
			return fmt.Errorf("%w: %w", errLost, refused)
		}
	}
	return err
}

func (l *lane) path(rest string) string { return l.client.path(l.Session.ID + "/" + rest) }

// keep renews the lease until ctx ends. A lease counts from before the request that
// renewed it, so that ours never ends after the service's. When the session is lost,
// or the lease has run out because the service could not be reached, keep cancels the
// work: somebody else may be at it by then.
func (l *lane) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		asked := time.Now()
		try, done := context.WithDeadlineCause(ctx, l.until, fmt.Errorf("%w: its lease could not be renewed", errLost))
		err := l.heartbeat(try, l.lease)
		done()
		if err != nil {
			cancel(err)
			return
		}
		l.until = asked.Add(l.lease)
		if pause(ctx, l.lease/3) != nil {
			return
		}
	}
}

// heartbeat makes the lease last so long from now on.
func (l *lane) heartbeat(ctx context.Context, lease time.Duration) error {
	return l.call(ctx, l.path("heartbeat"), map[string]any{"leaseSeconds": int(lease.Seconds())}, nil)
}

// log tells what is being done; kind is thought, action, response, error, status,
// artifact or elicitation. It gives the id of the entry.
func (l *lane) log(ctx context.Context, kind, message string) (string, error) {
	var answer struct {
		Activities []struct {
			ID string `json:"id"`
		} `json:"activities"`
	}
	if err := l.call(ctx, l.path("log"), map[string]any{"type": kind, "message": message}, &answer); err != nil {
		return "", err
	}
	if len(answer.Activities) != 1 {
		return "", errors.New("the service logged something else")
	}
	return answer.Activities[0].ID, nil
}

// report reports the session's status. An end is final; the same end may be reported
// again.
func (l *lane) report(ctx context.Context, fields map[string]any) error {
	return l.call(ctx, l.path("report"), fields, nil)
}

// ask logs a question and waits for the answer without a limit. The session is waiting
// meanwhile, and its lease is still renewed.
func (l *lane) ask(ctx context.Context, question string) (string, error) {
	asked, err := l.log(ctx, "elicitation", question)
	if err != nil {
		return "", err
	}
	if err := l.report(ctx, map[string]any{"status": "waiting"}); err != nil {
		return "", err
	}
	since := l.path("poll?wait=30&since=" + url.QueryEscape(asked))
	for {
		var answer struct {
			Status     string `json:"status"`
			Activities []struct {
				Type    string `json:"type"`
				Message string `json:"message"`
			} `json:"activities"`
		}
		if err := l.call(ctx, since, map[string]any{}, &answer); err != nil {
			return "", err
		}
		for _, activity := range answer.Activities {
			if activity.Type == "response" {
				return activity.Message, nil
			}
		}
		// Something else changed, or nothing did for half a minute.
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// handBack gives the session back to the queue. The attempt does not count, so that any
// number of restarts does not use up the session's attempts.
func (l *lane) handBack(ctx context.Context) error {
	return l.call(ctx, l.path("release"), map[string]any{"reason": "The agent stops before it is done."}, nil)
}

// save stores a checkpoint: the next claimer of the session gets it, on any process.
func (l *lane) save(ctx context.Context, checkpoint any) error {
	return l.request(ctx, http.MethodPut, l.path("checkpoint"), checkpoint, nil)
}

// errWaits is why work ends on a session that waits for something: it is queued again by then.
var errWaits = errors.New("the session waits")

// spawn hands a part of the work to a child session, with an issue of its own.
func (l *lane) spawn(ctx context.Context, title string) error {
	return l.call(ctx, l.path("children"), map[string]any{"title": title}, nil)
}

// join gives the session up until all of its children have ended. Any agent may claim it then.
func (l *lane) join(ctx context.Context) error {
	waitFor := map[string]any{"all": []any{map[string]any{"children": true}}}
	if err := l.report(ctx, map[string]any{"status": "waiting", "waitFor": waitFor}); err != nil {
		return err
	}
	return errWaits
}

// results returns the results of the children, newest first. It reports whether some of them have
// not ended.
func (l *lane) results(ctx context.Context) (all []string, open bool, err error) {
	var answer struct {
		Sessions []struct {
			Label  string  `json:"label"`
			Status string  `json:"status"`
			Result *string `json:"result"`
		} `json:"sessions"`
	}
	if err := l.request(ctx, http.MethodGet, l.path("children"), nil, &answer); err != nil {
		return nil, false, err
	}
	for _, s := range answer.Sessions {
		switch s.Status {
		case "completed", "failed", "canceled":
		default:
			open = true
		}
		if s.Result == nil {
			s.Result = &s.Status
		}
		all = append(all, s.Label+": "+*s.Result)
	}
	return all, open, nil
}
