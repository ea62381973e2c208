package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// answering is a service that gives these answers in turn, and the idempotency keys
// it was sent.
func answering(t *testing.T, statuses ...int) (*client, *[]string) {
	t.Helper()
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := statuses[min(len(keys), len(statuses)-1)]
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if status == 0 { // hang up in the middle of the answer
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"code":"X","message":"No.","activities":[{"id":"a"}]}`))
	}))
	t.Cleanup(server.Close)
	return &client{base: server.URL, workspace: "w", http: server.Client()}, &keys
}

func TestDo_RepeatsWhatMayPassUnderOneKey(t *testing.T) {
	t.Parallel()
	c, keys := answering(t, 503, 0, 429, 200)
	if err := c.do(t.Context(), "", c.path("claim"), nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(*keys) != 4 || len(slices.Compact(slices.Clone(*keys))) != 1 || (*keys)[0] == "" {
		t.Errorf("the keys were %q", *keys)
	}
}

func TestCall_KnowsWhenTheSessionIsLost(t *testing.T) {
	t.Parallel()
	for status, lost := range map[int]bool{400: false, 401: true, 403: false, 404: true, 409: true, 410: true, 422: false} {
		c, keys := answering(t, status)
		_, err := newLane(c, claimed{}, time.Minute).log(t.Context(), "action", "x")
		if err == nil || errors.Is(err, errLost) != lost || len(*keys) != 1 {
			t.Errorf("%d: %v after %d requests", status, err, len(*keys))
		}
	}
}

// A lease that can't be renewed is over by our clock, whatever the service thinks.
func TestKeep_GivesUpWithTheLease(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 503)
	ctx, cancel := context.WithCancelCause(t.Context())
	l := newLane(c, claimed{}, 30*time.Millisecond)
	l.keep(ctx, cancel)
	if !errors.Is(context.Cause(ctx), errLost) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

// A claim may have been answered long after it was asked for, and its lease is good.
func TestKeep_RenewsFirst(t *testing.T) {
	t.Parallel()
	c, keys := answering(t, 200, 200, 409)
	ctx, cancel := context.WithCancelCause(t.Context())
	l := newLane(c, claimed{}, 3*time.Second)
	l.lease = 30 * time.Millisecond
	l.keep(ctx, cancel)
	if len(*keys) != 3 || !errors.Is(context.Cause(ctx), errLost) {
		t.Errorf("%d requests, and the cause is %v", len(*keys), context.Cause(ctx))
	}
}
