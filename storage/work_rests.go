package storage

import (
	"context"
	"time"
)

const (
	// readStep is how many bytes are read between two looks at the time; a row counts for readRow more.
	readStep = 64 << 10
	readRow  = 1 << 10
	// readWork is how long a copy or a fingerprint works between two rests.
	readWork = 2 * time.Millisecond
)

// restingWork is work on all rows of a shard that rests in turns. Its zero value does not rest.
type restingWork struct {
	ctx   context.Context
	rests func(work time.Duration) time.Duration // nil: the work does not rest
	since time.Time                              // the last rest
	bytes int                                    // read since the last look at the time
}

// startWork begins work that rests as long as rests says after some milliseconds of it.
func startWork(ctx context.Context, rests func(time.Duration) time.Duration) restingWork {
	return restingWork{ctx: ctx, rests: rests, since: time.Now()}
}

// row counts a row that was read, and waits if the work is to rest.
func (w *restingWork) row(value []byte) {
	if w.bytes += readRow + len(value); w.bytes >= readStep {
		w.bytes = 0
		w.rest()
	}
}

// rest waits if the work is to rest after what was done since the last rest.
func (w *restingWork) rest() {
	if w.rests == nil {
		return
	}
	work := time.Since(w.since)
	if work < readWork {
		return
	}
	if rest := w.rests(min(work, longestWork)); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ctx.Done():
		}
	}
	w.since = time.Now()
}
