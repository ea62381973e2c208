package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cmd/internal/transfer"
	"switchyard/httpapi"
)

// Exit codes for scripts, most of them of the cluster's commands; docs/watch.md lists them. A wrong
// command line has kong's own.
const (
	exitFailed      = 1
	exitUnreachable = 3 // no answer, or 503
	exitCredential  = 4 // 401 or 403
	exitNoNode      = 5 // 404 of a path of a node
	exitRefused     = 6 // 409
	exitTimeout     = 7 // of waiting
	exitInterrupted = 130
)

// exitError is a failure with an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}

const (
	// answerWithin bounds one request; a node answers within its --request-timeout.
	answerWithin = 70 * time.Second
	// maxTopology bounds an answer in bytes: a thousand shards take less than one.
	maxTopology = 16 << 20
)

// clusterClient asks one node about its cluster.
type clusterClient struct {
	base  string
	token string
	http  *http.Client
}

func newClusterClient(base, token string) (*clusterClient, error) {
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--url %q: must be like http://127.0.0.1:8080", base)
	}
	if token == "" {
		return nil, &exitError{exitCredential, errors.New("this needs the operator's token: give --token-file, or set SWITCHYARD_ROOT_TOKEN")}
	}
	return &clusterClient{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
		Timeout: answerWithin,
		// The service redirects nowhere, and the token is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func nodePath(name string) string { return "/cluster/nodes/" + url.PathEscape(name) }

// do sends a request and returns the body of a successful answer.
func (c *clusterClient) do(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTopology))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, c.refused(path, res.StatusCode, body)
	}
	return body, nil
}

// topology asks how the cluster stands.
func (c *clusterClient) topology(ctx context.Context) (*httpapi.Topology, error) {
	raw, err := c.do(ctx, http.MethodGet, "/cluster")
	if err != nil {
		return nil, err
	}
	t := &httpapi.Topology{}
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	return t, nil
}

func (c *clusterClient) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, fmt.Errorf("stopped before %s answered: %w", c.base, ctx.Err())}
	}
	return unreachable(transfer.Unreached(c.base, err), "--url")
}

// refused returns the service's error about a path, or an error about an answer that is not
// the service's.
func (c *clusterClient) refused(path string, status int, body []byte) error {
	code := map[int]int{
		http.StatusUnauthorized: exitCredential, http.StatusForbidden: exitCredential,
		http.StatusConflict: exitRefused, http.StatusServiceUnavailable: exitUnreachable,
	}[status]
	switch {
	case status == http.StatusNotFound && strings.HasPrefix(path, nodePath("")):
		code = exitNoNode
	case code == 0:
		code = exitFailed
	}
	var told tracker.Error
	if json.Unmarshal(body, &told) != nil || told.Message == "" {
		return &exitError{code, fmt.Errorf("%s answered %d %s: is it a Switchyard node?", c.base, status, http.StatusText(status))}
	}
	switch status {
	case http.StatusUnauthorized:
		return &exitError{code, fmt.Errorf("%s does not accept the token: it must be the operator's token that the nodes were started with", c.base)}
	case http.StatusForbidden:
		return &exitError{code, errors.New("this token is not the operator's; give the root token the nodes were started with")}
	}
	return &exitError{code, fmt.Errorf("%s\n%s", told.Message, told.Hint)}
}
