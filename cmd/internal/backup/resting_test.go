package backup

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slowReader takes some time for each byte.
type slowReader struct {
	left int
	each time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.each)
	r.left--
	p[0] = 7
	return 1, nil
}

func TestResting(t *testing.T) {
	t.Parallel()
	threeTimes := func(work time.Duration) time.Duration { return 3 * work }
	for name, c := range map[string]struct {
		each  time.Duration
		rests func(time.Duration) time.Duration
		takes time.Duration // for 100 reads
	}{
		"no rests":                             {time.Millisecond, nil, 100 * time.Millisecond},
		"three times the work":                 {time.Millisecond, threeTimes, (100 + 3*100 - 3*2) * time.Millisecond}, // none behind the last work
		"rests of no length":                   {time.Millisecond, func(time.Duration) time.Duration { return 0 }, 100 * time.Millisecond},
		"a place that hangs is not waited for": {time.Second, threeTimes, 100*time.Second + 99*3*longestWork},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				n, err := io.Copy(io.Discard, io.LimitReader(&resting{r: &slowReader{left: 100, each: c.each}, ctx: t.Context(), rests: c.rests}, 100))
				if took := time.Since(began); n != 100 || err != nil || took != c.takes {
					t.Errorf("%d bytes, %v, in %v, want %v", n, err, took, c.takes)
				}
			})
		})
	}
}

// A rest ends with the backup.
func TestResting_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the node stops")
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		r := &resting{r: &slowReader{left: 9, each: workBetween}, ctx: ctx, rests: func(time.Duration) time.Duration { return time.Hour }}
		if _, err := io.ReadAll(r); !errors.Is(err, why) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
