package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxAnswer bounds an answer that is read as a whole, in bytes.
const maxAnswer = 64 << 20

// do sends a request and decodes the answer into answer, unless that is nil.
func (c *Client) do(ctx context.Context, method, path, media string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	res, err := c.send(ctx, method, path, media, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if answer == nil {
		// A connection is used again once its answer was read.
		_, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
		return err
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	return nil
}

// insist is do for requests that can be repeated. A request that is not certainly refused, or of
// which no answer comes, is sent again for retryFor.
func (c *Client) insist(ctx context.Context, method, path, media string, body []byte, answer any) error {
	began, pause := time.Now(), 100*time.Millisecond
	for tried := false; ; tried = true {
		err := c.do(ctx, method, path, media, body, answer)
		var refused *RefusedError
		if errors.As(err, &refused) {
			refused.tried = tried
		}
		if err == nil || refused != nil && refused.certain() || ctx.Err() != nil || time.Since(began) > retryFor {
			return err
		}
		if wait(ctx, pause) != nil {
			return Because(ctx, err)
		}
		pause = min(2*pause, retryLast)
	}
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// marshal encodes a value that can be encoded.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
