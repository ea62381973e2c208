package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
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

// do sends a POST; see send.
func (c *client) do(ctx context.Context, token, path string, body, out any) error {
	return c.send(ctx, http.MethodPost, token, path, body, out)
}

// send sends a request and reads its answer into out. It repeats the request after temporary
// errors until ctx ends, under the same Idempotency-Key, so that the service carries it
// out only once and each answer is that one's.
func (c *client) send(ctx context.Context, method, token, path string, body, out any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode a request: %w", err)
		}
	}
	key, wait := rand.Text(), firstPause
	for {
		asked := c.address()
		refused, err := c.once(ctx, method, token, asked+path, key, raw, out)
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
func (c *client) once(ctx context.Context, method, token, url, key string, body []byte, out any) (*refusal, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
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
