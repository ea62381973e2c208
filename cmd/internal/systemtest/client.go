package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// over wraps the transports of clients; tests set it to watch what comes back.
var over = func(base http.RoundTripper) http.RoundTripper { return base }

// Client sends requests to a node as one caller.
type Client struct {
	URL   string
	Token string
	HTTP  *http.Client
}

// NewClient makes a client that keeps up to conns connections open.
func NewClient(base, token string, conns int) *Client {
	return &Client{URL: base, Token: token, HTTP: &http.Client{
		Timeout:   15 * time.Second,
		Transport: over(&http.Transport{MaxIdleConnsPerHost: conns, MaxIdleConns: conns}),
	}}
}

// Answer is a response, read whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request; body is encoded as JSON unless it is nil. headers come in
// pairs of name and value.
func (c *Client) Do(ctx context.Context, method, path string, body any, headers ...string) (Answer, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return Answer{}, fmt.Errorf("%s %s: %w", method, path, err)
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, payload)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	LogSecrets.Answer(b)
	return Answer{res.StatusCode, res.Header, b}, nil
}

// Decode sends one request and reads the answer into out; a status other than
// want is an error.
func (c *Client) Decode(ctx context.Context, method, path string, body any, want int, out any, headers ...string) error {
	answer, err := c.Do(ctx, method, path, body, headers...)
	if err != nil {
		return err
	}
	if answer.Status != want {
		return fmt.Errorf("%s %s: status %d, want %d: %s", method, path, answer.Status, want, answer.Body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, answer.Body)
	}
	return nil
}

// Issue is what the tests look at of an issue.
type Issue struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`
	ExternalRef *string `json:"externalRef"`
	TeamID      string  `json:"teamId"`
	Number      int     `json:"number"`
	Identifier  string  `json:"identifier"`
	Estimate    *int    `json:"estimate"`
	Status      string  `json:"status"`
}

// Onboarded is a fresh workspace with its admin token.
type Onboarded struct {
	Workspace struct {
		ID            string `json:"id"`
		DefaultTeamID string `json:"defaultTeamId"`
	} `json:"workspace"`
	Token struct {
		Token string `json:"token"`
	} `json:"token"`
}

// Onboard makes a workspace.
func (c *Client) Onboard(ctx context.Context, name, slug string) (Onboarded, error) {
	var o Onboarded
	err := c.Decode(ctx, "POST", "/workspaces/onboard", map[string]string{"name": name, "slug": slug}, http.StatusCreated, &o)
	return o, err
}

// onboardInsisting is like Onboard, and repeats the request over changes of owners.
func (c *Client) onboardInsisting(ctx context.Context, name, slug string) (Onboarded, error) {
	var o Onboarded
	err := c.insist(ctx, "/workspaces/onboard", map[string]string{"name": name, "slug": slug}, slug, &o)
	return o, err
}

// Walk reads every issue of a workspace, page by page.
func (c *Client) Walk(ctx context.Context, workspace, filter string) ([]Issue, error) {
	var all []Issue
	cursor := ""
	for {
		path := "/workspaces/" + workspace + "/issues?limit=100&" + filter
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		var page struct {
			Issues     []Issue `json:"issues"`
			NextCursor string  `json:"nextCursor"`
		}
		if err := c.Decode(ctx, "GET", path, nil, http.StatusOK, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Issues...)
		if page.NextCursor == "" {
			return all, nil
		}
		cursor = page.NextCursor
	}
}
