package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"switchyard/cmd/internal/transfer"
	"switchyard/httpapi"
)

const (
	// tries and the pauses between them are those for one shard: an owner may die, or be
	// busy with another backup.
	tries      = 8
	firstPause = 500 * time.Millisecond
	mostPause  = 15 * time.Second
	maxHead    = 64 << 10
	maxAnswer  = 16 << 20
)

// Client asks a cluster with the operator's token.
type Client struct{ *transfer.Client }

// NewClient makes a client of a cluster that is reached by any of its nodes.
func NewClient(base, token string) (*Client, error) {
	c, err := transfer.NewClient(base, token)
	if err == nil && token == "" {
		err = errors.New("this needs the operator's token: give --token-file, or set SWITCHYARD_ROOT_TOKEN")
	}
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// again reports whether a request may succeed when it is repeated.
func again(err error) bool {
	var refused *transfer.RefusedError
	if errors.Is(err, errNoRoom) || errors.Is(err, syscall.ENOSPC) {
		return false // it would fill the disk once more
	}
	return !errors.As(err, &refused) || refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
}

// topology returns the cluster's id and the number of its workspace shards.
func (c *Client) topology(ctx context.Context) (*httpapi.Topology, error) {
	ctx, cancel := context.WithTimeout(ctx, transfer.Silence)
	defer cancel()
	res, err := c.Get(ctx, "/cluster")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var t httpapi.Topology
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&t); err != nil {
		return nil, fmt.Errorf("read the answer about the cluster: %w", err)
	}
	if t.ClusterID == "" || len(t.Shards) < 2 {
		return nil, errors.New("the service does not know its cluster's shards")
	}
	return &t, nil
}

// imageWriter takes an image, whose size it hears of before.
type imageWriter interface {
	io.Writer
	room(bytes int64) error
}

// fetch writes the image of a shard to out, unless the shard is at the index unless, which is
// not 0, and the node has made an image there.
func (c *Client) fetch(ctx context.Context, cluster string, shard int, unless uint64, out imageWriter) (*httpapi.ImageHead, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(transfer.Silence, func() { cancel(fmt.Errorf("the service sent nothing for %s", transfer.Silence)) })
	defer watch.Stop()
	path := "/cluster/backup/shards/" + strconv.Itoa(shard)
	if unless != 0 {
		path += "?unless=" + strconv.FormatUint(unless, 10)
	}
	res, err := c.Get(ctx, path)
	if err != nil {
		return nil, transfer.Because(ctx, err)
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
			return nil, transfer.Because(ctx, fmt.Errorf("the answer was cut off: %w", err))
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
	if err := out.room(head.Bytes); err != nil {
		return nil, err
	}
	n, err := io.Copy(out, body)
	if err == nil && n != head.Bytes {
		err = fmt.Errorf("%d bytes came of %d", n, head.Bytes)
	}
	if err != nil {
		return nil, transfer.Because(ctx, fmt.Errorf("the image was cut off: %w", err))
	}
	return head, nil
}

// watched notes that something comes.
type watched struct {
	r     io.Reader
	watch *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.watch.Reset(transfer.Silence)
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
