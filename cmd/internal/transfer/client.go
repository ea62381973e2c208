package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks a service as one caller.
type Client struct {
	base  string
	token string
	http  *http.Client
	// condition is a header such as If-Match, with tag as its value; empty: there is none.
	condition, tag string
	// pause is the first pause before an export that was cut off goes on; it doubles with each further one.
	pause time.Duration
}

// onlyIf returns a client whose requests take effect only on the condition of a header, such as If-Match.
func (c *Client) onlyIf(header, tag string) *Client {
	conditional := *c
	conditional.condition, conditional.tag = header, tag
	return &conditional
}

// Silence is how long the service may say nothing while it answers.
const Silence = time.Minute

// NewClient makes a client of the service at an address.
func NewClient(base, token string) (*Client, error) {
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--url %q: must be like http://127.0.0.1:8080", base)
	}
	return &Client{base: strings.TrimRight(base, "/"), token: token, pause: exportPause, http: &http.Client{
		// The service redirects nowhere, and the token is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Via has the client's connections made by dial, without TLS.
func (c *Client) Via(dial func(ctx context.Context) (net.Conn, error)) {
	c.http.Transport = &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		IdleConnTimeout: idleVia,
	}
}

// idleVia is how long a connection of Via is kept without a request.
const idleVia = 5 * time.Second

// RefusedError is an answer of the service other than success.
type RefusedError struct {
	Status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Details struct {
		Issues []struct {
			Path    string `json:"path"`
			Message string `json:"message"`
		} `json:"issues"`
	} `json:"details"`

	tried bool // set by insist: an earlier try of the request may have taken effect
}

func (e *RefusedError) Error() string {
	if e.Status == http.StatusUnauthorized {
		return "the service does not accept the token" // the hint is for clients that send headers themselves
	}
	text := fmt.Sprintf("the service answered %d: %s %s", e.Status, e.Message, e.Hint)
	for _, issue := range e.Details.Issues {
		text += fmt.Sprintf(" %s: %s", issue.Path, issue.Message)
	}
	return text
}

// certain reports whether the request has changed nothing, and would be refused again; for earlier tries
// of it see tried. Other answers
// are those of a service that can't serve it now, or can't say what became of it, those of a node that
// stops while the request arrives (408), and those of a proxy that has lost the node behind it.
func (e *RefusedError) certain() bool {
	return e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
}

// Get asks for a path and returns the answer of a success. The error is a *RefusedError where the
// service answered otherwise, and an *UnreachedError where no answer came.
func (c *Client) Get(ctx context.Context, path string) (*http.Response, error) {
	return c.send(ctx, http.MethodGet, path, "", nil)
}

// send sends a request and returns the answer of a success.
func (c *Client) send(ctx context.Context, method, path, media string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept-Encoding", "identity") // bytes are counted as they come
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if c.condition != "" {
		req.Header.Set(c.condition, c.tag)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, Unreached(c.base, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	refused := &RefusedError{Status: res.StatusCode}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || json.Unmarshal(text, refused) != nil {
		refused.Message = http.StatusText(res.StatusCode) + "."
	}
	return nil, refused
}

// Because adds the reason why a context has ended.
func Because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}
