package delivery

import (
	"slices"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// recorder writes the results of a workspace's deliveries through its actor. Results
// that arrive while a command is running go into the next one.
type recorder struct {
	dispatcher *Dispatcher
	workspace  storage.ID

	mu      sync.Mutex // guards the fields below; never held while waiting
	waiting []tracker.DeliveryOutcome
	writing bool
	added   uint64
	written uint64
}

const (
	// recordBatch is the number of results in one command.
	recordBatch = 256
	// recordLinger is the time that a result waits for others: a command for each would
	// cost as much as the events themselves.
	recordLinger = 5 * time.Millisecond
	// recordMost is the number of waiting results at which the workspace's queues stop:
	// it limits the deliveries that a crash would repeat.
	recordMost = 1024
	// A failed command is retried after recordFirst, then after twice the time at each
	// failure, up to recordLast.
	recordFirst = 20 * time.Millisecond
	recordLast  = 5 * time.Second
)

// add adds a result to be written. It returns the number of results added so far, and
// whether too many are waiting.
func (r *recorder) add(o tracker.DeliveryOutcome) (added uint64, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, o)
	r.added++
	if !r.writing && r.dispatcher.of.cfg.Enter() {
		r.writing = true
		go r.write()
	}
	return r.added, len(r.waiting) >= recordMost
}

// state returns the number of results written, and whether too many are waiting.
func (r *recorder) state() (written uint64, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written, len(r.waiting) >= recordMost
}

func (r *recorder) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) == 0 && !r.writing
}

// write writes results until none is waiting.
func (r *recorder) write() {
	d := r.dispatcher
	defer d.of.cfg.Leave()
	pause, repeated := recordFirst, false
	for {
		r.linger()
		batch := r.next()
		if batch == nil {
			return
		}
		// Results may be lost with the shard, since the deliveries are made again, but
		// one attempt is made while the node stops.
		ending := d.ctx.Err() != nil
		if err := r.record(batch, repeated); err != nil {
			repeated = true
			if ending {
				return
			}
			d.of.counters.recordsFailed.Add(1)
			if pause > recordFirst {
				d.of.cfg.Logger.Warn("record webhook deliveries", "workspace", r.workspace.String(), "error", err)
			}
			select {
			case <-time.After(pause):
			case <-d.ctx.Done():
			}
			pause = min(2*pause, recordLast)
			continue
		}
		pause, repeated = recordFirst, false
		r.wrote(len(batch))
		d.notify(r.workspace, dirtyRecorded)
	}
}

// linger waits for a batch to fill.
func (r *recorder) linger() {
	r.mu.Lock()
	full := len(r.waiting) >= recordBatch
	r.mu.Unlock()
	if full {
		return
	}
	timer := time.NewTimer(recordLinger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.dispatcher.ctx.Done():
	}
}

// next returns the next results to write, or nil. They stay in waiting until they are
// written.
func (r *recorder) next() []tracker.DeliveryOutcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.waiting, r.writing = nil, false
		return nil
	}
	return slices.Clone(r.waiting[:min(len(r.waiting), recordBatch)])
}

func (r *recorder) wrote(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.Delete(r.waiting, 0, n)
	r.written += uint64(n)
}

func (r *recorder) record(batch []tracker.DeliveryOutcome, repeated bool) error {
	d := r.dispatcher
	d.of.counters.records.Add(1)
	return d.of.cfg.Record(r.workspace, &tracker.DeliveryOutcomes{Outcomes: batch, Repeated: repeated, Stale: d.lost.Load})
}
