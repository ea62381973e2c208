package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/testkit"
)

// Not parallel: the stacks of other tests, whose nodes run, would fill the bounded part of them that is logged.
func TestWatchStop_LogsStacksOnlyWhenItTakesLong(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		want  int // lines of the log
	}{{6999 * time.Millisecond, 0}, {7001 * time.Millisecond, 1}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var log bytes.Buffer
			end := watchStop(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			held := make(chan struct{})
			go holdUp(held)
			time.Sleep(row.takes)
			end()
			synctest.Wait()
			if n := strings.Count(log.String(), "level=WARN"); n != row.want || strings.Contains(log.String(), "node.holdUp") != (n > 0) {
				t.Errorf("stopped after %s: the log is %q", row.takes, log.String())
			}
			close(held)
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := strings.Count(log.String(), "level=WARN"); n != row.want {
				t.Errorf("stopped after %s: %d lines in the end, want %d", row.takes, n, row.want)
			}
		})
	}
}

// holdUp is what a stop waits for.
func holdUp(until <-chan struct{}) { <-until }

// A client that does not read its answer is cut off early enough for the node to close its shards.
func TestStop_CutsOffSlowReaders(t *testing.T) {
	t.Parallel()
	c := sane()
	c.Data, c.Peer, c.Gossip, c.Metrics = t.TempDir(), "", "", "127.0.0.1:0"
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(errors.Join(err, n.Stop(context.WithoutCancel(t.Context()))))
	}
	testkit.Unread(t, n.HTTPAddr())
	ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
	defer cancel()
	began := time.Now()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it stopped after %s: the client did not hold it up, so this proves nothing", took)
	}
}
