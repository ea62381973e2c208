package bench

import (
	"sync"
	"time"
)

// Progress is the progress of a run.
type Progress struct {
	// Step of Steps is being measured; Name is its name.
	Step, Steps int
	Name        string
	// Elapsed is the time since the load began, and Lasts its whole length; 0 if that
	// depends on the node. Both include the warm-up.
	Elapsed, Lasts time.Duration
	// Rate is good answers in the last second, Answers those so far, and Errors all so
	// far.
	Rate            float64
	Answers, Errors int64
	// Uncounted is set if only the time is known.
	Uncounted bool
	// Done is set when the load is over, and its line may be cleared.
	Done bool
}

// progressEvery is the time between two reports of a load's progress.
const progressEvery = time.Second

// report reports the load's progress until the returned function is called. That
// function returns after the last report.
func (l *load) report(start time.Time) (stop func()) {
	if l.progress == nil {
		return func() {}
	}
	first := l.answers.Load() // of earlier runs of the same load
	over := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() {
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
		reports.Wait()
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
