package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// eventBook is what a listener to a workspace's events was told, from the first event on.
type eventBook struct {
	events []Told
	opened int // streams
	broken int // streams that ended before the listener closed them
}

// add appends the next event, which must follow the one before.
func (b *eventBook) add(e Told) error {
	if e.Sequence != uint64(len(b.events))+1 {
		return fmt.Errorf("event %d follows event %d", e.Sequence, len(b.events))
	}
	b.events = append(b.events, e)
	return nil
}

// last is the id to resume from.
func (b *eventBook) last() string { return strconv.Itoa(len(b.events)) }

// is reports whether two events are one.
func (e *Told) is(o Told) bool {
	return e.ID == o.ID && e.Type == o.Type && e.Sequence == o.Sequence && e.Data.ID == o.Data.ID
}

// listenFor bounds how long a listener stays at a node.
const listenFor = 6 * time.Second

// listen has a client of each workspace follow its events: by streams, and at times by requests that wait.
// It goes from one node to another, and resumes where it was.
func (t *traffic) listen(ctx context.Context, seed uint64) {
	ctx, cancel := context.WithCancel(ctx)
	t.running.Go(func() {
		defer cancel()
		select {
		case <-t.stop:
		case <-ctx.Done():
		}
	})
	members := t.fleet.Members()
	for n, s := range t.spaces {
		s.told = &eventBook{}
		rng := rand.New(rand.NewPCG(seed, uint64(1000+n)))
		t.running.Go(func() {
			clients := clientsOf(members, s)
			for ctx.Err() == nil {
				at := rng.IntN(len(clients))
				visit, leave := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(listenFor))))
				follow := t.followStream
				if rng.IntN(3) == 0 {
					follow = t.followPages
				}
				if err := follow(visit, s, clients[at]); err != nil {
					t.breach("events of %s by way of %s: %v", s.id, members[at].Name, err)
				}
				leave()
				t.wait(ctx, 20*time.Millisecond)
			}
		})
	}
}

// followStream reads a stream until it breaks off or ctx ends. An error is a promise that did not hold.
func (t *traffic) followStream(ctx context.Context, s *space, c *Client) error {
	query, last := "", s.told.last()
	if last == "0" {
		query, last = "?after=0", ""
	}
	stream, err := c.Listen(ctx, s.id, query, last)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		t.expected(refused.Answer, nil, "events")
		return nil
	case err != nil:
		return nil // the node is not there
	}
	defer stream.Close()
	s.told.opened++
	for {
		e, err := stream.Next()
		if err != nil {
			if ctx.Err() == nil {
				s.told.broken++
			}
			return nil
		}
		if err := s.told.add(*e); err != nil {
			return err
		}
	}
}

// followPages asks for what comes next, and waits for it, until ctx ends.
func (t *traffic) followPages(ctx context.Context, s *space, c *Client) error {
	for {
		var page struct {
			Events []Told `json:"events"`
		}
		answer, err := c.Do(ctx, "GET", "/workspaces/"+s.id+"/events?limit=100&wait=2&after="+s.told.last(), nil)
		if err != nil {
			return nil // the node is not there, or the time is up
		}
		t.expected(answer, nil, "events")
		if answer.Status != http.StatusOK {
			return nil
		}
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return err
		}
		for _, e := range page.Events {
			if err := s.told.add(e); err != nil {
				return err
			}
		}
	}
}

// verifyEvents compares what listeners were told with the log of events and with the changes that were
// acknowledged. Then a change must be told by way of each node. Each of these streams may break off a few
// times, since leaderships may still be shared out.
func (t *traffic) verifyEvents(ctx context.Context) {
	for _, s := range t.spaces {
		if s.told == nil {
			continue
		}
		log, err := t.fleet.alive()[0].Client(s.token).Events(ctx, s.id, "")
		if err != nil {
			t.breach("the events of %s: %v", s.id, err)
			continue
		}
		if len(s.told.events) == 0 || len(s.told.events) > len(log) {
			t.breach("a listener to %s was told %d events, there are %d", s.id, len(s.told.events), len(log))
			continue
		}
		created, updated := map[string]int{}, map[string]int{}
		for i, e := range log {
			if e.Sequence != uint64(i)+1 {
				t.breach("in the log of %s event %d follows event %d", s.id, e.Sequence, i)
				break
			}
			if i < len(s.told.events) && !s.told.events[i].is(e) {
				t.breach("a listener to %s was told of %+v, and the log has %+v", s.id, s.told.events[i], e)
				break
			}
			switch e.Type {
			case "issue.created":
				created[e.Data.ID]++
			case "issue.updated":
				updated[e.Data.Title]++
			}
		}
		for ref, id := range s.created {
			if id != "" && created[id] != 1 {
				t.breach("%s was created, and there are %d events of it", ref, created[id])
			}
		}
		for _, value := range s.written {
			if updated[value] != 1 {
				t.breach("%s was written, and there are %d events of it", value, updated[value])
			}
		}
		t.verifyTold(ctx, s, strconv.Itoa(len(log)))
		if err := t.verifyClaims(ctx, s); err != nil {
			t.breach("claims of %s: %v", s.id, err)
		}
	}
}

// hearing is how long it may take until a change is told by way of each node, when there are no faults,
// and mostBreaks how often a stream may break off meanwhile.
const (
	hearing    = 20 * time.Second
	mostBreaks = 3
)

// verifyTold makes a change and looks for it by way of each node, from a stream that was open before.
func (t *traffic) verifyTold(ctx context.Context, s *space, last string) {
	ctx, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	members := t.fleet.alive()
	streams := make([]*Stream, len(members))
	for i, m := range members {
		var err error
		if streams[i], err = m.open(ctx, s, last); err != nil {
			t.breach("events of %s by way of %s: %v", s.id, m.Name, err)
			return
		}
	}
	var made Issue
	if err := members[0].Client(s.token).insist(ctx, "/workspaces/"+s.id+"/issues", map[string]any{"title": "told at the end"}, "told", &made); err != nil {
		t.breach("a change for the listeners to %s: %v", s.id, err)
		return
	}
	for i, m := range members {
		stream := streams[i]
		for breaks := 0; ; {
			e, err := stream.Next()
			if err == nil && e.Data.ID == made.ID {
				break
			}
			if err == nil {
				continue
			}
			stream.Close()
			if breaks++; breaks > mostBreaks {
				t.breach("the stream of %s by way of %s breaks off: %v", s.id, m.Name, err)
				break
			}
			if stream, err = m.open(ctx, s, stream.Last); err != nil {
				t.breach("events of %s by way of %s: %v", s.id, m.Name, err)
				return
			}
		}
		stream.Close()
	}
}

// open opens a stream at the node, again while the answer is 503.
func (m *Member) open(ctx context.Context, s *space, last string) (*Stream, error) {
	for {
		stream, err := m.Client(s.token).Listen(ctx, s.id, "", last)
		var refused *refusal
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || !pause(ctx, 20*time.Millisecond) {
			return stream, err
		}
	}
}

// listened returns, of each workspace, the numbers of streams, of those that broke off and of events.
func (t *traffic) listened() (all [][3]int) {
	for _, s := range t.spaces {
		if s.told != nil {
			all = append(all, [3]int{s.told.opened, s.told.broken, len(s.told.events)})
		}
	}
	return all
}
