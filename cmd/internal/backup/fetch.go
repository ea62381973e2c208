package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/httpapi"
)

const (
	// silence is how long a node may say nothing while it answers.
	silence = time.Minute
	// tries and the pauses between them are those for one shard: an owner may die, or be
	// busy with another backup.
	tries      = 8
	firstPause = 500 * time.Millisecond
	mostPause  = 15 * time.Second
	maxHead    = 64 << 10
	maxAnswer  = 16 << 20
)

// Client asks a cluster with the operator's token.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient makes a client of a cluster that is reached by any of its nodes.
func NewClient(base, token string) (*Client, error) {
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--url %q: must be like http://127.0.0.1:8080", base)
	}
	if token == "" {
		return nil, errors.New("this needs the operator's token: give --token-file, or set SWITCHYARD_ROOT_TOKEN")
	}
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
		// The service redirects nowhere, and the token is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// refusedError is an answer other than success.
type refusedError struct {
	status  int
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (e *refusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the service answered %d: %s %s", e.status, e.Message, e.Hint))
}

// again reports whether a request may succeed when it is repeated.
func again(err error) bool {
	var refused *refusedError
	return !errors.As(err, &refused) || refused.status >= 500 || refused.status == http.StatusTooManyRequests
}

func (c *Client) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept-Encoding", "identity")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	refused := &refusedError{status: res.StatusCode}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || json.Unmarshal(text, refused) != nil {
		refused.Message = http.StatusText(res.StatusCode) + "."
	}
	return nil, refused
}

// topology returns the cluster's id and the number of its workspace shards.
func (c *Client) topology(ctx context.Context) (cluster string, shards int, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	res, err := c.get(ctx, "/cluster")
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = res.Body.Close() }()
	var t httpapi.Topology
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&t); err != nil {
		return "", 0, fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if t.ClusterID == "" || len(t.Shards) < 2 {
		return "", 0, fmt.Errorf("%s does not know its cluster's shards", c.base)
	}
	return t.ClusterID, len(t.Shards) - 1, nil
}

// fetch writes the image of a shard to out, unless the shard is at the index unless, which is
// not 0.
func (c *Client) fetch(ctx context.Context, cluster string, shard int, unless uint64, out io.Writer) (*httpapi.ImageHead, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the service sent nothing for %s", silence)) })
	defer watch.Stop()
	path := "/cluster/backup/shards/" + strconv.Itoa(shard)
	if unless != 0 {
		path += "?unless=" + strconv.FormatUint(unless, 10)
	}
	res, err := c.get(ctx, path)
	if err != nil {
		return nil, because(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	body := bufio.NewReaderSize(&watched{res.Body, watch}, maxHead)
	head := &httpapi.ImageHead{Copying: true}
	for head.Copying {
		text, err := body.ReadSlice('\n')
		if err == nil {
			*head = httpapi.ImageHead{}
			err = json.Unmarshal(text, head)
		}
		if err != nil {
			return nil, because(ctx, fmt.Errorf("the answer was cut off: %w", err))
		}
	}
	switch {
	case head.Error != "":
		return nil, errors.New("the service could not copy the shard: " + head.Error)
	case head.Version != httpapi.ImageVersion:
		return nil, fmt.Errorf("the service sends images of version %d, and this program reads version %d", head.Version, httpapi.ImageVersion)
	case head.ClusterID != cluster || head.Shard != shard:
		return nil, fmt.Errorf("the answer is about shard %d of cluster %s", head.Shard, head.ClusterID)
	}
	n, err := io.Copy(out, body)
	if err == nil && n != head.Bytes {
		err = fmt.Errorf("%d bytes came of %d", n, head.Bytes)
	}
	if err != nil {
		return nil, because(ctx, fmt.Errorf("the image was cut off: %w", err))
	}
	return head, nil
}

// because adds the reason why a context has ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// watched notes that something comes.
type watched struct {
	r     io.Reader
	watch *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.watch.Reset(silence)
	return n, err
}

// pause waits before the next try, for longer each time.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(min(firstPause<<try, mostPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
