package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// proposal is a batch that waits, with its callback.
type proposal struct {
	batch []byte
	done  func(error)
	seq   uint64 // counts the shard's proposals
}

// refusal is a proposal that was refused, with its callback.
type refusal struct {
	done func(error)
	err  error
}

// entry is a Raft entry in flight, made of proposals in order.
type entry struct {
	data      []byte // merged, or packed
	merged    []byte
	packed    []byte
	proposals []proposal
	future    raft.ApplyFuture
	began     int64 // when it was handed to Raft
	bulky     bool  // it has at least bulkyEntry bytes
}

// applier is the part of raft.Raft that the committer uses.
type applier interface {
	Apply(data []byte) raft.ApplyFuture
}

// committer turns a shard's proposals into Raft entries. While entries are in flight, new proposals
// are merged into the next entry: under load an entry carries many batches and costs one fsync and
// one pass through Raft. Large batches are taken in turns with small ones, see lanes.
//
// Two goroutines run: submit makes entries and answers refused proposals; awaitEntries waits for
// entries in order and answers their proposals.
type committer struct {
	to     applier
	tuning *tuning
	budget *queueBudget
	// pace returns how long an entry with so many bytes should wait; nil: none waits.
	pace func(bytes int) time.Duration
	// check returns the error of proposals that could not be committed; nil: none is refused.
	check func() error

	wake     chan struct{} // capacity 1: there is work for submit
	slots    chan struct{} // one token per entry in flight
	inFlight chan *entry   // in the order of the log; as many as there are slots
	quit     chan struct{}
	ended    sync.WaitGroup

	mu       sync.Mutex
	epoch    uint64 // 0: no proposal is accepted
	closed   bool   // submit does not run, or is about to end
	lanes    lanes
	bulky    bool      // an entry of at least bulkyEntry bytes is in flight
	refusals []refusal // at most one per caller that waits; drained at once

	waiting waitClock // of the oldest entry in flight

	pool sync.Pool // *entry with buffers to reuse

	entries, batches atomic.Uint64
}

func newCommitter(to applier, t *tuning, budget *queueBudget, pace func(bytes int) time.Duration) *committer {
	c := &committer{
		to:       to,
		tuning:   t,
		budget:   budget,
		pace:     pace,
		wake:     make(chan struct{}, 1),
		slots:    make(chan struct{}, t.inFlight),
		inFlight: make(chan *entry, t.inFlight),
		quit:     make(chan struct{}),
		closed:   true,
	}
	c.pool.New = func() any { return new(entry) }
	return c
}

// run starts the committer's goroutines; stop stops them.
func (c *committer) run() {
	c.mu.Lock()
	c.closed = false
	c.mu.Unlock()
	c.ended.Add(2)
	go c.submit()
	go c.awaitEntries()
}

// beginEpoch accepts proposals of an epoch from now on.
func (c *committer) beginEpoch(epoch uint64) {
	c.mu.Lock()
	c.epoch = epoch
	c.mu.Unlock()
}

// endEpoch accepts no more proposals and refuses those in the queue. Entries in flight are still
// answered.
func (c *committer) endEpoch() {
	c.mu.Lock()
	c.epoch = 0
	for _, l := range [...]*lane{&c.lanes.small, &c.lanes.large} {
		for _, p := range l.queue {
			c.refusals = append(c.refusals, refusal{p.done, errNotOwner})
		}
	}
	c.budget.give(c.lanes.large.bytes)
	c.lanes = lanes{}
	c.mu.Unlock()
	c.signal()
}

// drain waits until no entry is in flight, and reports whether that was so in time. The caller has ended
// the epoch.
func (c *committer) drain(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	taken := 0
	for late := false; !late && taken < cap(c.slots); {
		select {
		case c.slots <- struct{}{}:
			taken++
		case <-timer.C:
			late = true
		}
	}
	for range taken {
		<-c.slots
	}
	return taken == cap(c.slots)
}

// stop ends the committer for good. It returns when every proposal is answered: entries that can't be
// committed are answered when Raft ends.
func (c *committer) stop() {
	c.close()
	c.ended.Wait()
}

// close takes no more proposals for good. It does not wait for the answers.
func (c *committer) close() {
	c.endEpoch()
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.quit)
	}
	c.mu.Unlock()
}

func (c *committer) propose(epoch uint64, batch []byte, done func(error)) {
	var unfit error
	if c.check != nil {
		unfit = c.check()
	}
	c.mu.Lock()
	if c.closed { // no goroutine is left to answer
		c.mu.Unlock()
		done(errClosing)
		return
	}
	var err error
	to := c.lanes.of(batch)
	switch {
	case len(batch) < batchHeader:
		err = errMalformed
	case len(batch) > maxBatch:
		err = errTooLarge
	case c.epoch == 0 || epoch != c.epoch:
		err = errNotOwner
	case unfit != nil:
		err = unfit
	case c.lanes.count() >= c.tuning.queueBatches || to.bytes+len(batch) > c.tuning.queueBytes && len(to.queue) > 0,
		to == &c.lanes.large && !c.budget.take(len(batch), to.bytes):
		err = errQueueFull
	}
	if err != nil {
		c.refusals = append(c.refusals, refusal{done, err})
	} else {
		c.lanes.seq++
		to.queue = append(to.queue, proposal{batch, done, c.lanes.seq})
		to.bytes += len(batch)
	}
	c.mu.Unlock()
	c.signal()
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *committer) submit() {
	defer c.ended.Done()
	defer close(c.inFlight)
	for {
		c.mu.Lock()
		refused := c.refusals
		c.refusals = nil
		var slots chan struct{} // nil blocks: there is nothing to take
		if c.lanes.next(c.bulky) != nil {
			slots = c.slots
		}
		quit := c.closed && c.lanes.count() == 0
		c.mu.Unlock()
		for _, r := range refused {
			r.done(r.err)
		}
		if quit {
			return
		}
		select {
		case slots <- struct{}{}:
			if e := c.nextEntry(); e != nil {
				c.rest(len(e.merged))
				e.began = c.tuning.clock()
				e.future = c.to.Apply(e.data)
				c.inFlight <- e
			} else {
				<-c.slots
			}
		case <-c.wake:
		case <-c.quit:
		}
	}
}

// rest waits before an entry with so many bytes, as long as the pace says or until the committer ends.
func (c *committer) rest(bytes int) {
	if c.pace == nil {
		return
	}
	wait := c.pace(bytes)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.quit:
	}
}

// nextEntry merges proposals of one lane, up to the bounds of an entry; nil if there are none to
// take.
func (c *committer) nextEntry() *entry {
	e := c.pool.Get().(*entry)
	c.mu.Lock()
	from := c.lanes.next(c.bulky)
	if from == nil {
		c.mu.Unlock()
		c.pool.Put(e)
		return nil
	}
	epoch := c.epoch
	proposals, size := from.take(e.proposals, c.tuning.entryBatches, c.lanes.most(from, c.tuning.entryBytes))
	e.proposals = proposals
	c.lanes.took(from, size)
	if from == &c.lanes.large {
		c.budget.give(size)
	}
	e.bulky = size >= bulkyEntry
	c.bulky = c.bulky || e.bulky
	c.mu.Unlock()
	n := len(e.proposals)
	if size := mergedSize(e.proposals); cap(e.merged) < size {
		e.merged = make([]byte, 0, size)
	}
	e.merged = mergeBatches(e.merged[:0], epoch, e.proposals)
	e.data = e.merged
	if packed, ok := pack(e.packed, e.merged); ok {
		e.packed, e.data = packed, packed
	}
	c.entries.Add(1)
	c.batches.Add(uint64(n))
	return e
}

// maxPooledBuffer is the size of the largest buffer that is reused.
const maxPooledBuffer = 256 << 10

func (c *committer) awaitEntries() {
	defer c.ended.Done()
	for e := range c.inFlight {
		c.waiting.begin(e.began)
		err := e.future.Error()
		if err == nil {
			// The commit point: a quorum has the entry on disk and this node's state shows it. From
			// here on the proposers may answer their callers.
			err, _ = e.future.Response().(error)
		}
		c.waiting.end()
		if err != nil {
			err = proposalError(err)
		}
		<-c.slots // before the answers, which bring the next proposals
		if e.bulky {
			c.mu.Lock()
			c.bulky = false
			c.mu.Unlock()
			c.signal()
		}
		for _, p := range e.proposals {
			p.done(err)
		}
		clear(e.proposals)
		e.proposals, e.future = e.proposals[:0], nil
		// After a failure Raft may still hold the bytes.
		if err != nil || cap(e.merged) > maxPooledBuffer {
			e.merged, e.packed = nil, nil
		}
		e.data = nil
		c.pool.Put(e)
	}
}
