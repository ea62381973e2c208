package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a client of a service that gives these answers in turn, and a function
// that returns the idempotency keys the service was sent.
func answering(t *testing.T, statuses ...int) (c *client, sent func() []string) {
	t.Helper()
	var (
		mu   sync.Mutex // a connection that is hung up orders nothing before the next one's request
		keys []string
	)
	next := func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, key)
		return statuses[min(len(keys), len(statuses))-1]
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := next(r.Header.Get("Idempotency-Key"))
		if status == 0 { // hang up in the middle of the answer
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"code":"X","message":"No.","activities":[{"id":"a"}]}`))
	}))
	t.Cleanup(server.Close)
	sent = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(keys)
	}
	return &client{base: server.URL, workspace: "w", http: server.Client()}, sent
}

func TestDo_RepeatsWhatMayPassUnderOneKey(t *testing.T) {
	t.Parallel()
	c, sent := answering(t, 503, 0, 429, 200)
	if err := c.do(t.Context(), "", c.path("claim"), nil, nil); err != nil {
		t.Fatal(err)
	}
	keys := sent()
	if len(keys) != 4 || keys[0] == "" || len(slices.Compact(slices.Clone(keys))) != 1 {
		t.Errorf("the keys were %q", keys)
	}
}

func TestCall_KnowsWhenTheSessionIsLost(t *testing.T) {
	t.Parallel()
	for status, lost := range map[int]bool{400: false, 401: true, 403: false, 404: true, 409: true, 410: true, 422: false} {
		c, sent := answering(t, status)
		_, err := newLane(c, claimed{}, time.Minute).log(t.Context(), "action", "x")
		if err == nil || errors.Is(err, errLost) != lost || len(sent()) != 1 {
			t.Errorf("%d: %v after %d requests", status, err, len(sent()))
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

// A lease that can't be renewed ends by our clock, even if the service extended it.
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

// elsewhere is a client of two nodes, the second of which is named as the owner, and
// the numbers of requests with a token that they were sent.
func elsewhere(t *testing.T, named func(owner string) string, ownerSays int) (c *client, entry, owner *atomic.Int64) {
	t.Helper()
	entry, owner = new(atomic.Int64), new(atomic.Int64)
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer t" {
			owner.Add(1)
		}
		w.WriteHeader(ownerSays)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(second.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entry.Add(1)
		w.Header().Set(ownerHeader, named(second.URL))
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(first.Close)
	return &client{base: first.URL, workspace: "w", http: first.Client(), nodes: []string{first.URL, second.URL}}, entry, owner
}

func TestOwner_IsAskedDirectly(t *testing.T) {
	t.Parallel()
	c, entry, owner := elsewhere(t, func(url string) string { return url }, 200)
	for range 3 {
		if err := c.do(t.Context(), "t", c.path("claim"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if entry.Load() != 1 || owner.Load() != 2 {
		t.Errorf("%d requests at the address given and %d at the owner", entry.Load(), owner.Load())
	}
}

// An owner that can't serve is left, with the same request.
func TestOwner_IsLeftWhenItFails(t *testing.T) {
	t.Parallel()
	c, entry, owner := elsewhere(t, func(url string) string { return url }, 503)
	for range 2 {
		if err := c.do(t.Context(), "t", c.path("claim"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if entry.Load() != 2 || owner.Load() != 1 {
		t.Errorf("%d requests at the address given and %d at the owner", entry.Load(), owner.Load())
	}
	// So is one that is gone.
	gone := httptest.NewServer(nil)
	gone.Close()
	c.nodes = append(c.nodes, gone.URL)
	c.learn(gone.URL)
	if err := c.do(t.Context(), "t", c.path("claim"), nil, nil); err != nil {
		t.Fatal(err)
	}
}

// A token is sent to no URL but those given, even if an answer names another.
func TestOwner_OfNoGivenURLIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]func(string) string{
		"another scheme": func(url string) string { return "https" + strings.TrimPrefix(url, "http") },
		"another host":   func(string) string { return "http://attacker.example" },
		"more behind it": func(url string) string { return url + "@attacker.example" },
		"nothing":        func(string) string { return "" },
	} {
		c, entry, owner := elsewhere(t, named, 200)
		for range 2 {
			if err := c.do(t.Context(), "t", c.path("claim"), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if entry.Load() != 2 || owner.Load() != 0 {
			t.Errorf("%s: %d requests at the address given and %d at the owner", name, entry.Load(), owner.Load())
		}
	}
	c, entry, owner := elsewhere(t, func(url string) string { return url }, 200)
	c.nodes = nil // as without -nodes
	for range 2 {
		if err := c.do(t.Context(), "t", c.path("claim"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if entry.Load() != 2 || owner.Load() != 0 {
		t.Errorf("without -nodes: %d requests at the address given and %d at the owner", entry.Load(), owner.Load())
	}
}

func TestParseNodes(t *testing.T) {
	t.Parallel()
	if nodes, err := parseNodes("http://a:1, https://b/,"); err != nil || !slices.Equal(nodes, []string{"http://a:1", "https://b"}) {
		t.Errorf("%q, %v", nodes, err)
	}
	for _, text := range []string{"a:1", "ftp://a", "http://a/path", "http://user@a"} {
		if _, err := parseNodes(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
