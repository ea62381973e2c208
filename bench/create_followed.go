package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// followers is how many streams of events are open in createFollowed.
const followers = 1000

// createFollowed is createHot in a workspace whose events a thousand streams tell of.
// The readers of the streams use the machine too. The node tells as much as
// a bounded part of its time allows, and the streams come after the log, not the
// writers after the streams.
var createFollowed = scenario{
	name: "create-followed", about: "create an issue, all in one workspace with 1000 streams of its events",
	target: 0.9, status: 201,
	requests: func(w *world, connection int) func() []byte {
		return creates(w, []workspace{w.hot}, connection)
	},
	beside: func(ctx context.Context, w *world) (func() string, error) {
		return follow(ctx, w.host, w.hot, followers)
	},
}

// follow opens streams of a workspace's events and reads them until the returned
// function is called, which tells how much came.
func follow(ctx context.Context, host string, in workspace, streams int) (stop func() string, err error) {
	var read atomic.Int64
	var all sync.WaitGroup
	conns := make([]net.Conn, 0, streams)
	began := time.Now()
	stop = func() string {
		for _, c := range conns {
			_ = c.Close()
		}
		all.Wait()
		return fmt.Sprintf("%d streams read %.0f MB/s", len(conns), float64(read.Load())/1e6/time.Since(began).Seconds())
	}
	asked := request("GET", host, "/workspaces/"+in.id+"/events", in.token, "")
	asked = append(asked[:len(asked)-2], "Accept: text/event-stream\r\n\r\n"...)
	var d net.Dialer
	for range streams {
		c, err := d.DialContext(ctx, "tcp", host)
		if err != nil {
			_ = stop()
			return nil, fmt.Errorf("bench: open a stream: %w", err)
		}
		conns = append(conns, c)
		var status [12]byte
		if _, err = c.Write(asked); err == nil {
			_, err = io.ReadFull(c, status[:])
		}
		if err == nil && string(status[9:]) != "200" {
			err = errors.New(string(status[:]))
		}
		if err != nil {
			_ = stop()
			return nil, fmt.Errorf("bench: open a stream: %w", err)
		}
		all.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := c.Read(buf)
				read.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
	}
	return stop, nil
}
