package bench

import (
	"slices"
	"testing"
	"time"
)

func TestTimeline_CountsByTime(t *testing.T) {
	t.Parallel()
	line := newTimeline(time.Second)
	one, two := line.writer(), line.writer()
	for _, ms := range []int{0, 50, 99, 950, 999, 1000, 1200} {
		one.count(time.Duration(ms)*time.Millisecond, 1000)
	}
	for _, ms := range []int{10, 100, 350} {
		two.count(time.Duration(ms)*time.Millisecond, int64(ms)*100)
	}
	one.flush()
	two.flush()
	var r Result
	r.addTimeline(line)
	if want := []float64{40, 10, 0, 10, 0, 0, 0, 0, 0, 20}; r.TimelineStep != 0.1 || !slices.Equal(r.Timeline, want) {
		t.Errorf("rates of parts of %g s: %v, want %v", r.TimelineStep, r.Timeline, want)
	}
	for i, want := range map[int]float64{0: 1, 1: 10, 2: 0, 3: 35, 9: 1} {
		if got := r.TimelineP99[i]; got < want*0.99 || got > want*1.01 {
			t.Errorf("p99 of part %d: %g ms, want %g", i, got, want)
		}
	}
}

func TestTimeline_HasABoundedNumberOfParts(t *testing.T) {
	t.Parallel()
	if long := newTimeline(time.Hour); len(long.parts) != maxTimeline {
		t.Errorf("%d parts of an hour", len(long.parts))
	}
	none := newTimeline(0)
	w := none.writer()
	w.count(time.Second, 1)
	w.flush()
	var r Result
	if r.addTimeline(none); r.Timeline != nil || r.TimelineStep != 0 {
		t.Errorf("a load without a set time has %v", r.Timeline)
	}
}
