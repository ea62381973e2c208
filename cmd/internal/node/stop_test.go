package node

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchStop_LogsStacksOnlyWhenItTakesLong(t *testing.T) {
	t.Parallel()
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
