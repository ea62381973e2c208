package bench

import (
	"context"
	"fmt"
	"strings"
)

// poll asks for news of sessions that have not changed: the most frequent request of
// clients that watch a fleet.
var poll = scenario{
	name: "poll", about: "poll a session that is as it was",
	limit: emptyLimit, target: 0.55, status: 200, filled: true,
	prepare: func(ctx context.Context, w *world) error {
		if w.polled != nil {
			return nil
		}
		return w.beginPolled(ctx)
	},
	requests: func(w *world, connection int) func() []byte {
		requests := make([][]byte, len(w.polled))
		for i, path := range w.polled {
			requests[i] = request("POST", w.host, path, w.read.token, "")
		}
		n := connection
		return func() []byte {
			n++
			return requests[n%len(requests)]
		}
	},
}

// polledSessions is how many sessions are polled.
const polledSessions = 64

// beginPolled makes the sessions that are polled, each with a log of three entries.
func (w *world) beginPolled(ctx context.Context) error {
	d := w.dial()
	defer d.close()
	text := w.sessionText(0)
	for i := range min(polledSessions, len(w.ids)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		path, err := w.dispatch(d, w.read, w.ids[i], "watched", text)
		if err != nil {
			return err
		}
		last := ""
		for range 3 {
			body, err := ask(d, request("POST", w.host, path+"/log", w.read.token, text.log()), 201)
			if err != nil {
				return err
			}
			if last, _ = issueID(body); last == "" {
				return fmt.Errorf("bench: a log entry without an id: %.300s", body)
			}
		}
		w.polled = append(w.polled, path+"/poll?since="+last)
	}
	return nil
}

// dispatch makes a session and gives its path.
func (w *world) dispatch(d doer, in workspace, issue, agent string, text sessionText) (path string, err error) {
	body, err := ask(d, request("POST", w.host, "/workspaces/"+in.id+"/issues/"+issue+"/dispatch", in.token, text.dispatch(agent)), 201)
	if err != nil {
		return "", err
	}
	id, ok := issueID(body)
	if !ok {
		return "", fmt.Errorf("bench: a session without an id: %.300s", body)
	}
	return "/workspaces/" + in.id + "/agent/sessions/" + id, nil
}

// ask sends a request that must be answered with a status.
func ask(d doer, request []byte, status int) ([]byte, error) {
	got, body, err := d.do(request)
	if err == nil && got != status {
		err = fmt.Errorf("status %d, want %d: %.300s", got, status, body)
	}
	if err != nil {
		line, _, _ := strings.Cut(string(request), " HTTP/")
		return nil, fmt.Errorf("bench: %s: %w", line, err)
	}
	return body, nil
}
