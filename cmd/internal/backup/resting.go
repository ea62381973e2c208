package backup

import (
	"context"
	"io"
	"time"
)

const (
	// workBetween is how long a file is read back between two rests.
	workBetween = 2 * time.Millisecond
	// longestWork bounds the work that counts for one rest: the place of the backups may hang.
	longestWork = 25 * time.Millisecond
)

// resting is a file that is read in turns with rests: to read it back at full speed takes a whole processor, and
// the requests of a node on the same machine wait.
type resting struct {
	r     io.Reader
	ctx   context.Context
	rests func(work time.Duration) time.Duration // nil: there are none
	since time.Time                              // the last rest
}

func (r *resting) Read(p []byte) (int, error) {
	if r.rests == nil {
		return r.r.Read(p)
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	if work := time.Since(r.since); work >= workBetween {
		if err := r.rest(r.rests(min(work, longestWork))); err != nil {
			return 0, err
		}
		r.since = time.Now()
	}
	return r.r.Read(p)
}

func (r *resting) rest(length time.Duration) error {
	if length <= 0 {
		return nil
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
