package node

import (
	"testing"
	"time"
)

// Images rest in proportion to the requests, and to their own number. They take the node for busy
// until requests were counted for a while.
func TestImageRests(t *testing.T) {
	t.Parallel()
	const work = 2 * time.Millisecond
	now, count := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), uint64(1_000_000)
	var r imageRests
	// pass lets two seconds pass with requests, in steps, and returns the rest of the last one.
	pass := func(perSecond uint64, images int) (rest time.Duration) {
		for range 20 {
			now, count = now.Add(rateEvery), count+perSecond/10
			rest = r.after(work, images, count, now)
		}
		return rest
	}
	if rest := r.after(work, 1, count, now); rest != fullRest*work {
		t.Errorf("nothing is known of requests, and an image rests %s", rest)
	}
	if rest := pass(0, 2); rest != 0 {
		t.Errorf("there are no requests, and an image rests %s", rest)
	}
	if rest := pass(10, 1); rest <= 0 || rest > fullRest*work/2 {
		t.Errorf("there are few requests, and an image rests %s", rest)
	}
	if rest := pass(100, 1); rest != fullRest*work {
		t.Errorf("there are many requests, and an image rests %s", rest)
	}
	if rest := pass(100, 2); rest != 2*fullRest*work {
		t.Errorf("there are many requests, and one of two images rests %s", rest)
	}
	if rest := pass(0, 2); rest != 0 {
		t.Errorf("the requests have ended, and an image rests %s", rest)
	}
	// The requests of the time between two backups say nothing of now.
	now = now.Add(time.Hour)
	if rest := r.after(work, 1, count, now); rest != fullRest*work {
		t.Errorf("nothing was counted for an hour, and an image rests %s", rest)
	}
}
