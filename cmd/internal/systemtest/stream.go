package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Told is what the tests look at of an event.
type Told struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Sequence uint64 `json:"sequence"`
	Data     struct {
		ID       string  `json:"id"`
		Title    string  `json:"title"`
		Body     string  `json:"body"`
		ParentID *string `json:"parentId"`
	} `json:"data"`
}

// Stream is a stream of events that a client reads.
type Stream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
	// Last is the id to resume from.
	Last string
}

// refusal is an answer to the request for a stream that is none.
type refusal struct{ Answer }

func (r *refusal) Error() string { return fmt.Sprintf("no stream: status %d: %s", r.Status, r.Body) }

// Listen opens a stream of a workspace's events. last is the id to resume from; empty:
// none. It ends with ctx, or when it is closed.
func (c *Client) Listen(ctx context.Context, workspace, query, last string) (*Stream, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/workspaces/"+workspace+"/events"+query, nil)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	endless := *c.HTTP
	endless.Timeout = 0
	res, err := endless.Do(req)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		return nil, errors.Join(&refusal{Answer{res.StatusCode, res.Header, b}}, err)
	}
	s := &Stream{body: res.Body, lines: bufio.NewScanner(res.Body), Last: last}
	s.lines.Buffer(nil, 8<<20)
	return s, nil
}

// Next reads the next event. An incomplete event is dropped, as in a browser. The
// error is io.EOF when the stream has ended.
func (s *Stream) Next() (*Told, error) {
	var event *Told
	id := s.Last
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			id = value
		case "data":
			event = &Told{}
			if err := json.Unmarshal([]byte(value), event); err != nil {
				return nil, fmt.Errorf("listen: read an event: %w", err)
			}
		case "":
			if s.lines.Text() != "" {
				continue // a comment
			}
			s.Last = id
			if event == nil {
				continue
			}
			if strconv.FormatUint(event.Sequence, 10) != id {
				return nil, fmt.Errorf("listen: event %d has the id %s", event.Sequence, id)
			}
			return event, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return nil, io.EOF
}

// Close ends the stream.
func (s *Stream) Close() { _ = s.body.Close() }

// Events reads the whole log, page by page.
func (c *Client) Events(ctx context.Context, workspace, query string) ([]Told, error) {
	var all []Told
	after := "0"
	for {
		var page struct {
			Events     []Told `json:"events"`
			NextCursor string `json:"nextCursor"`
		}
		if err := c.Decode(ctx, "GET", "/workspaces/"+workspace+"/events?limit=100&after="+after+query, nil, http.StatusOK, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		if page.NextCursor == "" {
			return all, nil
		}
		after = page.NextCursor
	}
}
