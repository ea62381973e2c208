package actors

import "sync"

// workers runs the mailboxes of actors on goroutines that it keeps for the next run. The library's own
// dispatcher starts a goroutine for each run. A command needs some 16 KiB of stack, and a new goroutine gets
// there by copying its stack several times: about 7 % of the processor time of a creation.
//
// A worker is a goroutine that waits for a mailbox, or runs one. The engine ends those that wait when it
// closes; the others end with their run. workers implements actor.Dispatcher.
type workers struct {
	mu    sync.Mutex
	idle  []chan func() // of workers that wait; the last one is the first to work, its stack is still cached
	ended bool
}

const (
	// maxIdleWorkers bounds the workers that wait. A worker has 32 KiB of stack or less.
	maxIdleWorkers = 64
	// mailboxThroughput is the number of messages after which a mailbox lets other goroutines run.
	mailboxThroughput = 300
)

// Schedule runs a mailbox on a goroutine of its own.
func (w *workers) Schedule(run func()) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.mu.Unlock()
		go w.work(run)
		return
	}
	next := w.idle[n]
	w.idle = w.idle[:n]
	w.mu.Unlock()
	next <- run // capacity 1, and empty: its worker waits
}

// Throughput returns the number of messages that a mailbox may handle before it lets others run.
func (w *workers) Throughput() int { return mailboxThroughput }

// work is a worker's goroutine.
func (w *workers) work(run func()) {
	next := make(chan func(), 1)
	for run != nil {
		run()
		w.mu.Lock()
		if w.ended || len(w.idle) == maxIdleWorkers {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, next)
		w.mu.Unlock()
		run = <-next
	}
}

// end ends the workers that wait, and has the others end after their run.
func (w *workers) end() {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.ended = nil, true
	w.mu.Unlock()
	for _, next := range idle {
		close(next)
	}
}
