package actors

import (
	"runtime"
	"time"
)

// buildTurn is how long something is made in memory before others have their turn: as long as the scheduler of Go lets
// a goroutine run. Beside many lists that walk indexes, all of them run before the work goes on.
const buildTurn = 10 * time.Millisecond

// turn waits for a turn to do background work.
func (e *Engine) turn() error {
	select {
	case e.turns <- struct{}{}:
		return nil
	case <-e.stopped.Done():
		return errClosing()
	}
}

// inTurns does background work, in turns with other work: fn is to call pause every few hundred microseconds, and to
// end with its error.
func (e *Engine) inTurns(fn func(pause func() error) error) error {
	if err := e.turn(); err != nil {
		return err
	}
	holds, began := true, time.Now()
	defer func() {
		if holds {
			<-e.turns
		}
	}()
	return fn(func() error {
		if time.Since(began) < buildTurn {
			return nil
		}
		<-e.turns
		runtime.Gosched()
		err := e.turn()
		holds, began = err == nil, time.Now()
		return err
	})
}
