package actors

import (
	"runtime"
	"time"

	"switchyard/actors/tracker"
)

// takeTurn waits until a heavy query may run; the caller gives the turn back by receiving
// from heavy. Without turns all that come share the processors: each then takes as long as
// all of them together, and the slowest much longer. Those that wait do so in the order in
// which they came, as channels keep it. They are no more than the connections are.
func (e *Engine) takeTurn(deadline time.Time) error {
	select {
	case e.heavy <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case e.heavy <- struct{}{}:
		return nil
	case <-timer.C:
		e.stats.refused[refusedLate].Add(1)
		return tracker.NotApplied("The request timed out before it began.")
	}
}

// endTurn gives the turn back. The query that waits for it would run next on this processor, before
// requests that came earlier and have less to do: Go runs a goroutine first that was just woken. So
// requests that wait for the processor go before.
func (e *Engine) endTurn() {
	runtime.Gosched()
	<-e.heavy
}
