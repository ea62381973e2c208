package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// client sends requests to Switchyard, each until it has an answer.
type client struct {
	base, workspace string
	token           string // of the workspace; opens the claim queue
	http            *http.Client
	nodes           []string               // URLs that may be sent tokens, beside base
	owner           atomic.Pointer[string] // one of nodes: that of the workspace's owner; nil: not known
}

// refusal is an answer that says no. Its body is the same for every one of them.
type refusal struct {
	Status     int           `json:"-"`
	RetryAfter time.Duration `json:"-"`
	Code       string        `json:"code"`
	Message    string        `json:"message"`
	Hint       string        `json:"hint"`
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%d %s: %s %s", r.Status, r.Code, r.Message, r.Hint)
}

// passing reports whether the same request may well succeed later: too many of them
// (429), or a node that is busy, starting or going (5xx).
func (r *refusal) passing() bool {
	return r.Status == http.StatusTooManyRequests || r.Status >= 500
}

// path is the path of something about sessions.
func (c *client) path(rest string) string {
	return "/workspaces/" + c.workspace + "/agent/sessions/" + rest
}

// The pauses between two tries, unless the service asks for longer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// do sends a POST and reads its answer into out. It repeats the request after temporary
// errors until ctx ends, under the same Idempotency-Key, so that the service carries it
// out only once and each answer is that one's.
func (c *client) do(ctx context.Context, token, path string, body, out any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a request: %w", err)
	}
	key, wait := rand.Text(), firstPause
	for {
		asked := c.address()
		refused, err := c.once(ctx, token, asked+path, key, raw, out)
		if err != nil || refused != nil && refused.passing() {
			c.forget(asked) // another node may do better
		}
		switch {
		case refused != nil && !refused.passing():
			return refused
		case err == nil && refused == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		// Half of the pause is left to chance, so that a fleet does not come back as one.
		next := wait/2 + mathrand.N(wait/2)
		if refused != nil {
			next = max(next, refused.RetryAfter)
		}
		if err := pause(ctx, next); err != nil {
			return err
		}
		wait = min(2*wait, lastPause)
	}
}

// once sends the request once. An error comes from the network, and the request may have
// been carried out or not.
func (c *client) once(ctx context.Context, token, url, key string, body []byte, out any) (*refusal, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	c.learn(res.Header.Get(ownerHeader))
	answer, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		refused := &refusal{Status: res.StatusCode}
		_ = json.Unmarshal(answer, refused) // a proxy's answer is not JSON; the status suffices
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			refused.RetryAfter = time.Duration(seconds) * time.Second
		}
		return refused, nil
	}
	if out == nil {
		return nil, nil
	}
	return nil, json.Unmarshal(answer, out)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

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

// call is do in the lane. Four answers mean that there is nothing left to do here:
// the lease ran out and somebody else may have the session (409), the session is
// over (401), or it can't be found (404, 410).
func (l *lane) call(ctx context.Context, path string, body, out any) error {
	err := l.do(ctx, l.LaneToken, path, body, out)
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

// handBack gives the session up as fast as the service allows: it goes back to the
// queue when the shortest lease there is has run out.
func (l *lane) handBack(ctx context.Context) error {
	if _, err := l.log(ctx, "status", "The agent stops before it is done. The session goes back to the queue."); err != nil {
		return err
	}
	return l.heartbeat(ctx, 10*time.Second)
}
