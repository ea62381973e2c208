package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchyard/internal/durable"
)

// Client asks a service as one caller.
type Client struct {
	base  string
	token string
	http  *http.Client
	// condition is a header such as If-Match, with tag as its value; empty: there is none.
	condition, tag string
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
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
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
// service answered otherwise.
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
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
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

// Export writes a workspace to a file, which gets its name once it is whole and checked. It replaces a file of
// that name, and fails if the name is that of anything else.
func (c *Client) Export(ctx context.Context, workspace, file string, progress func(bytes int64)) (summary *Summary, err error) {
	if err := checkReplaceable(file); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(Silence, func() { cancel(fmt.Errorf("the service sent nothing for %s", Silence)) })
	defer watch.Stop()
	res, err := c.Get(ctx, "/workspaces/"+url.PathEscape(workspace)+"/export")
	if err != nil {
		return nil, Because(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part*")
	if err != nil {
		return nil, fmt.Errorf("make the file: %w", err)
	}
	defer func() {
		if err == nil {
			return
		}
		if left := os.Remove(part.Name()); !errors.Is(left, fs.ErrNotExist) { // it may have its name by now
			err = errors.Join(err, left)
		}
	}()
	counted := &counter{watch: watch, progress: progress}
	summary, err = Check(io.TeeReader(io.TeeReader(res.Body, counted), part))
	if err != nil {
		var damaged *DamagedError
		if errors.As(err, &damaged) {
			err = fmt.Errorf("the export is cut off or damaged: %w", err)
		}
		return nil, errors.Join(Because(ctx, err), part.Close())
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return nil, fmt.Errorf("name the file: %w", err)
	}
	return summary, durable.SyncDir(filepath.Dir(file))
}

// checkReplaceable returns an error if there is something at a path that a rename to it must not replace: a device,
// a named pipe, a link.
func checkReplaceable(file string) error {
	if file == "" {
		return errors.New("the name of the file is empty")
	}
	at, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for a file of that name: %w", err)
	case at.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: is a symbolic link, and would be replaced; give the path of the file", file)
	case !at.Mode().IsRegular():
		return fmt.Errorf("%s: is not a file, and would be replaced; give the path of a file", file)
	}
	return nil
}

// Because adds the reason why a context has ended.
func Because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// counter counts the bytes that come, and notes that some do.
type counter struct {
	bytes    int64
	watch    *time.Timer
	progress func(int64)
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	c.watch.Reset(Silence)
	if c.progress != nil {
		c.progress(c.bytes)
	}
	return len(p), nil
}
