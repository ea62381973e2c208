package cluster

import (
	"sync"
	"sync/atomic"
)

// flusher flushes the state instance for all shards. Calls during a flush share the next flush, and
// nothing is flushed twice.
type flusher struct {
	do func() error

	writes atomic.Uint64 // batches committed

	flushMu sync.Mutex // held during a flush
	flushed uint64     // writes before the last flush began; under flushMu

	mu   sync.Mutex
	next *flushRound // round that has not begun yet
}

type flushRound struct {
	done chan struct{}
	err  error
}

// written is called after a batch is committed. If it were called before, a flush in between would
// count the batch as flushed.
func (f *flusher) written() { f.writes.Add(1) }

// flush returns when every batch committed before the call is durable.
func (f *flusher) flush() error {
	f.mu.Lock()
	round := f.next
	if round != nil {
		f.mu.Unlock()
		<-round.done
		return round.err
	}
	round = &flushRound{done: make(chan struct{})}
	f.next = round
	f.mu.Unlock()

	f.flushMu.Lock()
	defer f.flushMu.Unlock()
	f.mu.Lock()
	f.next = nil
	f.mu.Unlock()
	if writes := f.writes.Load(); writes != f.flushed {
		if round.err = f.do(); round.err == nil {
			f.flushed = writes
		}
	}
	close(round.done)
	return round.err
}
