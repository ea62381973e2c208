package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// scripted answers like answering does, in the test's own process and so by the
// clock of a synctest bubble.
type scripted struct {
	statuses []int
	asked    int
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	status := s.statuses[min(s.asked, len(s.statuses)-1)]
	s.asked++
	return &http.Response{
		StatusCode: status, Request: req, Header: http.Header{"Retry-After": {"0"}},
		Body: io.NopCloser(strings.NewReader(`{"code":"X","message":"No."}`)),
	}, nil
}

// A lease that can't be renewed is over by our clock, whatever the service thinks.
func TestKeep_GivesUpWithTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		l := newLane(&client{http: &http.Client{Transport: &scripted{statuses: []int{503}}}}, claimed{}, 30*time.Second)
		l.keep(ctx, cancel)
		if took := time.Since(began); !errors.Is(context.Cause(ctx), errLost) || took != 30*time.Second {
			t.Errorf("after %s the cause is %v", took, context.Cause(ctx))
		}
	})
}

// A claim may have been answered long after it was asked for, and its lease is good.
func TestKeep_RenewsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		began, service := time.Now(), &scripted{statuses: []int{200, 200, 409}}
		l := newLane(&client{http: &http.Client{Transport: service}}, claimed{}, 30*time.Second)
		l.keep(ctx, cancel)
		if took := time.Since(began); service.asked != 3 || took != 20*time.Second || !errors.Is(context.Cause(ctx), errLost) {
			t.Errorf("%d requests in %s, and the cause is %v", service.asked, took, context.Cause(ctx))
		}
	})
}
