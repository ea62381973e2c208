package node

import (
	"testing"
	"time"
)

// Images rest in proportion to the requests, and to their own number. They take the node for busy
// until requests were counted for a while.
func TestImageRests(t *testing.T) {
	t.Parallel()
	now, count := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), uint64(1_000_000)
	var r imageRests
	// pass lets two seconds pass with requests, in steps, and returns the length of a rest at their end.
	pass := func(perSecond uint64, images int) (length float64) {
		for range 20 {
			now, count = now.Add(rateEvery), count+perSecond/10
			length = r.length(images, count, now)
		}
		return length
	}
	if length := r.length(1, count, now); length != fullRest {
		t.Errorf("nothing is known of requests, and an image rests %v times its work", length)
	}
	if length := pass(0, 2); length != 0 {
		t.Errorf("there are no requests, and an image rests %v times its work", length)
	}
	if length := pass(10, 1); length <= 0 || length > fullRest/2 {
		t.Errorf("there are few requests, and an image rests %v times its work", length)
	}
	if length := pass(100, 1); length != fullRest {
		t.Errorf("there are many requests, and an image rests %v times its work", length)
	}
	if length := pass(100, 2); length != 2*fullRest {
		t.Errorf("there are many requests, and one of two images rests %v times its work", length)
	}
	if length := pass(0, 2); length != 0 {
		t.Errorf("the requests have ended, and an image rests %v times its work", length)
	}
	// The requests of the time between two backups say nothing of now.
	now = now.Add(time.Hour)
	if length := r.length(1, count, now); length != fullRest {
		t.Errorf("nothing was counted for an hour, and an image rests %v times its work", length)
	}
}

func TestImageRests_GetShorter(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]float64{
		-time.Second: 1, 0: 1, halvedAfter - 1: 1, halvedAfter: 0.5, 2 * halvedAfter: 0.25, 3 * halvedAfter: 0.125, 100 * halvedAfter: 0.125,
	} {
		if got := aged(age); got != want {
			t.Errorf("at an age of %s rests have %v of their length, want %v", age, got, want)
		}
	}
}
