package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// waiting measures what it costs a node that many clients wait for something: its
// memory beside that before they came, and the processor's time beside that of a node
// nobody waits for. Where the run starts its node it starts another for this, since a
// loaded node's memory says little.
var waiting = scenario{
	name: waitingName, about: "polls that wait",
	alone: func(ctx context.Context, r *run) (figures []Figure, err error) {
		node := r.node
		if r.URL == "" {
			if node, err = r.StartNode(ctx, r.Dir); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, node.Stop()) }()
		}
		w, err := onboard(ctx, node.URL, r.Token, 1)
		if err != nil {
			return nil, err
		}
		if err := w.fillWork(ctx); err != nil {
			return nil, err
		}
		if figures, err = waitTogether(ctx, r, node, w); err != nil {
			figures = []Figure{{Scenario: waitingName, About: "polls that wait", Fault: err.Error()}}
		}
		return figures, nil
	},
}

const (
	waitingName = "waiting"
	// pollWait is the longest a poll may wait, in seconds; what is measured must be over
	// before.
	pollWait = 30
	// longestLook bounds how long the waiting node is looked at.
	longestLook = 5 * time.Second
	// waitingMB and waitingCPU are the targets of 10,000 polls: megabytes, and percents
	// of a core, below which the timers of two readings can't be told apart.
	waitingMB  = 50
	waitingCPU = 1
)

// waitTogether has polls wait and tells what they cost.
func waitTogether(ctx context.Context, r *run, node *Process, w *world) ([]Figure, error) {
	paths, err := w.watched(ctx)
	if err != nil {
		return nil, err
	}
	look := min(r.Duration, longestLook)
	sleep(ctx, min(settle, look))
	idle := node.busy(ctx, look)
	before := node.rss()
	began := time.Now()
	polls := &polls{addr: w.host, conns: make([]net.Conn, r.Waiting)}
	defer polls.close()
	if err := polls.open(ctx, func(i int) []byte { return request("POST", w.host, paths[i%len(paths)], w.many[0].token, "") }); err != nil {
		return nil, err
	}
	sleep(ctx, min(settle, look))
	busy := node.busy(ctx, look)
	after := node.rss()
	if err := polls.stillWait(); err != nil {
		return nil, err
	}
	if took := time.Since(began); took > pollWait*time.Second {
		return nil, fmt.Errorf("the polls were over before they were looked at, after %s", took)
	}
	about := fmt.Sprintf("%d polls wait: ", r.Waiting)
	if before == 0 {
		return []Figure{{Scenario: waitingName, About: about + "all of them, but the node's memory can't be read", Value: float64(r.Waiting)}}, nil
	}
	return []Figure{
		{Scenario: waitingName, About: about + "memory beside that before", Value: float64(after-before) / (1 << 20), Unit: "MB", Target: waitingMB},
		{Scenario: waitingName, About: about + fmt.Sprintf("processor, %.1f %% of a core, beside %.1f %% idle", busy, idle), Value: max(0, busy-idle), Unit: "%", Target: waitingCPU},
	}, nil
}

// watched makes sessions and gives the paths of polls that wait for them.
func (w *world) watched(ctx context.Context) ([]string, error) {
	d := w.dial()
	defer d.close()
	in := w.many[0]
	issues := w.work[in.id]
	paths := make([]string, 0, len(issues))
	text := w.sessionText(0)
	for _, issue := range issues {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path, err := w.dispatch(d, in, issue, "watched", text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, fmt.Sprintf("%s/poll?wait=%d", path, pollWait))
	}
	return paths, nil
}

// polls are connections with one request each, which is not answered yet.
type polls struct {
	addr  string
	conns []net.Conn
}

// opensPerSecond is the rate at which polls arrive. A burst of all of them would make
// the node start workers that it keeps for a while, and their memory is no cost of
// waiting.
const opensPerSecond = 2000

// open sends the requests.
func (p *polls) open(ctx context.Context, request func(i int) []byte) error {
	const openers = 16
	pace := newPacer(time.Now(), time.Hour, opensPerSecond, 0)
	faults := make([]error, openers)
	var all sync.WaitGroup
	for o := range openers {
		all.Go(func() {
			for i := o; i < len(p.conns) && faults[o] == nil && ctx.Err() == nil; i += openers {
				if due, _ := pace.take(time.Now()); !sleep(ctx, time.Until(due)) {
					return
				}
				c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", p.addr)
				if err == nil {
					p.conns[i] = c
					_, err = c.Write(request(i))
				}
				faults[o] = err
			}
		})
	}
	all.Wait()
	return errors.Join(append(faults, ctx.Err())...)
}

// stillWait fails when one was answered.
func (p *polls) stillWait() error {
	for _, c := range p.conns {
		// Data that is there is read even when the deadline is over soon.
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond / 4)); err != nil {
			return err
		}
		var begins [200]byte
		if n, err := c.Read(begins[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("a poll did not wait: %q, %w", begins[:n], err)
		}
	}
	return nil
}

func (p *polls) close() {
	for _, c := range p.conns {
		if c != nil {
			_ = c.Close()
		}
	}
}
