package bench

import (
	"sync"
	"time"
)

// Progress is how far a run is.
type Progress struct {
	// Step of Steps is what is measured; Name says what that is.
	Step, Steps int
	Name        string
	// Elapsed is how long the load has gone on and Lasts how long it will; 0 when
	// that depends on the node. Both have the warm-up in them.
	Elapsed, Lasts time.Duration
	// Rate is good answers in the last second, Answers those so far, and Errors all so
	// far.
	Rate            float64
	Answers, Errors int64
	// Done says that the load is over: what was shown of it may go.
	Done bool
}

// progressEvery is how often a load tells how far it is.
const progressEvery = time.Second

// report tells of the load's progress until the returned function is called, which
// returns when nothing more is told.
func (l *load) report(start time.Time) (stop func()) {
	if l.progress == nil {
		return func() {}
	}
	first := l.answers.Load() // of earlier runs of the same load
	over := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		every := time.NewTicker(progressEvery)
		defer every.Stop()
		last, before := start, first
		for {
			var now time.Time
			done := false
			select {
			case now = <-every.C:
			case <-over:
				now, done = time.Now(), true
			}
			p := Progress{Elapsed: now.Sub(start), Answers: l.answers.Load(), Errors: l.faults.Load(), Done: done}
			if l.lasts > 0 {
				p.Lasts = l.warmup + l.lasts
			}
			if gone := now.Sub(last).Seconds(); gone > 0 {
				p.Rate = float64(p.Answers-before) / gone
			}
			last, before = now, p.Answers
			p.Answers -= first
			l.progress(p)
			if done {
				return
			}
		}
	})
	return func() {
		close(over)
		told.Wait()
	}
}

// progressOf completes what a load tells; nil when nobody asked.
func progressOf(tell func(Progress), step, steps int, name string) func(Progress) {
	if tell == nil {
		return nil
	}
	return func(p Progress) {
		p.Step, p.Steps, p.Name = step, steps, name
		tell(p)
	}
}
