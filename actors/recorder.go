package actors

import (
	"errors"
	"slices"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// recorder writes what became of a workspace's deliveries back through its actor:
// what comes together while a command is under way goes into the next one.
type recorder struct {
	dispatcher *dispatcher
	workspace  storage.ID

	mu      sync.Mutex // guards the rest; never held while waiting for anything
	waiting []tracker.DeliveryOutcome
	writing bool
	added   uint64
	written uint64
}

const (
	// recordBatch is how many outcomes go into one command.
	recordBatch = 256
	// recordLinger is how long an outcome waits for others to go along: a command for
	// each would cost as much as the events themselves.
	recordLinger = 5 * time.Millisecond
	// recordMost is how many may wait: then the workspace's lanes stop, or what would
	// be sent twice after a crash would grow.
	recordMost = 1024
	// A command that fails is tried again after recordFirst, then twice as long each
	// time up to recordLast.
	recordFirst = 20 * time.Millisecond
	recordLast  = 5 * time.Second
)

// add takes an outcome to be written. It gives how many were added so far, and
// whether too many wait.
func (r *recorder) add(o tracker.DeliveryOutcome) (added uint64, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, o)
	r.added++
	if !r.writing && r.dispatcher.shard.engine.background.enter() {
		r.writing = true
		go r.write()
	}
	return r.added, len(r.waiting) >= recordMost
}

// state gives how many outcomes were written, and whether too many wait.
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

// write writes what waits until nothing does.
func (r *recorder) write() {
	d := r.dispatcher
	e := d.shard.engine
	defer e.background.leave()
	pause, repeated := recordFirst, false
	for {
		r.linger()
		batch := r.next()
		if batch == nil {
			return
		}
		// Outcomes that are lost with the shard are no loss: the deliveries are made
		// again. But a try is worth it when the node stops.
		ending := d.ctx.Err() != nil
		if err := r.record(batch, repeated); err != nil {
			repeated = true
			if ending {
				return
			}
			e.stats.recordsFailed.Add(1)
			if pause > recordFirst {
				e.log.Warn("what became of webhook deliveries can't be written", "workspace", r.workspace.String(), "error", err)
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
		d.tell(r.workspace, newsRecorded)
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

// next gives the outcomes to write, which stay in front until they are; nil when
// there are none.
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
	e := r.dispatcher.shard.engine
	e.stats.records.Add(1)
	_, err := e.do(tracker.ServiceRequest("webhooks", r.workspace), tracker.RecordDeliveries, &tracker.DeliveryOutcomes{Outcomes: batch, Repeated: repeated, Stale: r.dispatcher.lost.Load})
	var told *tracker.Error
	if errors.As(err, &told) && told.Code == tracker.CodeNotFound {
		return nil // the workspace is gone, and what was to be delivered with it
	}
	return err
}
