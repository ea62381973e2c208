package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxTimeline is the most parts that a measured time is divided into, and minStep how
// long each lasts at least.
const (
	maxTimeline = 60
	minStep     = 100 * time.Millisecond
)

// partDigits is the precision of a part's latencies: less than that of the whole, for
// there are many parts.
const partDigits = 2

// timeline has the latencies of equal parts of a measured time, each step long. All
// connections of a load share it; each writes through a timelineWriter of its own.
type timeline struct {
	step  time.Duration
	mu    sync.Mutex
	parts []*hdrhistogram.Histogram // microseconds; nil: nothing was answered in that part
}

// newTimeline makes one for a measurement that lasts so long. It is nil for one without
// a set time, and then takes nothing.
func newTimeline(lasts time.Duration) *timeline {
	if lasts <= 0 {
		return nil
	}
	step := max(lasts/maxTimeline, min(minStep, lasts))
	return &timeline{step: step, parts: make([]*hdrhistogram.Histogram, lasts/step)}
}

// writer makes one connection's writer.
func (t *timeline) writer() *timelineWriter { return &timelineWriter{timeline: t} }

// timelineWriter collects the answers of one connection. It hands them over part by
// part, so that connections meet only where a part ends.
type timelineWriter struct {
	timeline *timeline
	part     int
	current  *hdrhistogram.Histogram
}

// count notes an answer that came so long after the measured time began and took so
// many microseconds. Calls are in the order of at.
func (w *timelineWriter) count(at time.Duration, micros int64) {
	if w.timeline == nil {
		return
	}
	if part := int(at / w.timeline.step); part != w.part {
		w.flush()
		w.part = part
	}
	if w.current == nil {
		w.current = newPartHistogram()
	}
	_ = w.current.RecordValue(micros)
}

// flush hands over the part at hand. The connection calls it at its end, too.
func (w *timelineWriter) flush() {
	if w.current == nil || w.current.TotalCount() == 0 {
		return
	}
	t := w.timeline
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.part < len(t.parts) { // what is left of the last part is not plotted
		if t.parts[w.part] == nil {
			t.parts[w.part] = newPartHistogram()
		}
		t.parts[w.part].Merge(w.current)
	}
	w.current.Reset()
}

func newPartHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(lowestLatency, highestLatency, partDigits)
}
