package actors

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// proposal is a batch that is being replicated. When its outcome is known, the proposal
// is sent to the actor as a message.
type proposal struct {
	root    *actor.RootContext
	pid     *actor.PID
	touched storage.DirtyFlags
	queued  []storage.ID // webhooks that may have deliveries in the batch
	// settles is set for the empty batch after one in doubt.
	settles bool

	called atomic.Bool
	err    error

	overdue *time.Timer // see lostWait; nil while the shard is owned
}

// done is the callback of the replicator. It never blocks.
func (p *proposal) done(err error) {
	if p.called.Swap(true) {
		return
	}
	p.err = err
	p.root.Send(p.pid, p)
}

// propose seals the open batch and passes it to the replicator.
func (w *workspaceActor) propose() {
	if w.proposal != nil || len(w.batch) == 0 {
		return
	}
	w.joinClaims()
	w.answers = 0 // the next batch's
	touched, queued := w.buffer.Dirty(), slices.Clone(w.buffer.Queued())
	repr, err := w.buffer.Seal()
	if err != nil {
		w.engine.log.Error("seal a batch", "workspace", w.h.workspace.String(), "error", err)
		w.discard()
		w.refuseBatch(tracker.NotApplied("The change could not be prepared for replication."))
		return
	}
	if repr == nil { // the writes were undone, by commands that failed
		w.buffer.Committed()
		w.memory.count(0)
		batch := w.batch
		w.batch = nil
		for _, c := range batch {
			c.unproven = true
			w.conclude(c)
		}
		return
	}
	if !w.engine.replicator.HasRoom(w.h.shard.number) { // before the filter sets note the batch, and are dropped with it
		w.refuseUnapplied()
		return
	}
	stats := &w.engine.stats
	stats.batches.Add(1)
	stats.batchCommands.Add(uint64(len(w.batch)))
	stats.batchOps.Add(uint64(w.buffer.Ops()))
	stats.batchBytes.Add(uint64(len(repr)))
	from, to := w.buffer.Versions()
	w.h.proposed.Store(to)
	w.engine.lists.note(w.h.shard.number, w.h.workspace, repr, from, to)
	w.submit(&proposal{touched: touched, queued: queued}, repr)
}

// submit passes a batch to the replicator and holds the latch until its outcome is
// known.
func (w *workspaceActor) submit(p *proposal, repr []byte) {
	p.root, p.pid = w.engine.root, w.self
	w.proposal = p
	// The latch can't be shut here: the actor has a command, a doubt or a sender's hold.
	w.h.latch.hold()
	defer func() {
		if v := recover(); v != nil {
			p.done(fmt.Errorf("the replicator panicked: %v", v))
		}
	}()
	w.engine.replicator.Propose(w.h.shard.number, w.h.epoch, repr, p.done)
}

// decided continues after a batch's outcome is known.
func (w *workspaceActor) decided(p *proposal) {
	defer w.unhold() // the hold of submit
	if p != w.proposal {
		return // of an actor that panicked and was replaced; its callers were answered then
	}
	w.proposal = nil
	if p.overdue != nil {
		p.overdue.Stop()
	}
	switch {
	case p.settles:
		w.settled(p)
	case p.err == nil:
		w.committed(p)
	case certainlyNotApplied(p.err):
		w.engine.lists.drop(w.h.workspace)
		w.refuseUnapplied()
		w.runWaiting()
	default:
		w.engine.log.Warn("outcome of a batch unknown", "workspace", w.h.workspace.String(), "shard", int(w.h.shard.number), "error", p.err)
		w.discard()
		w.doubt(p.touched)
		w.refuseBatch(tracker.OutcomeUnknown("The change was not confirmed."))
		w.resolveDoubt()
	}
}

// committed is the commit point: the batch is durable on a quorum and applied here. No
// answer was sent before this line, and a crash before it loses only unacknowledged
// changes. After it the change survives any crash.
func (w *workspaceActor) committed(p *proposal) {
	wakes, hasEvents := w.buffer.WakeUps(), w.buffer.HasEvents()
	w.engine.worked(w.buffer.Work())
	w.buffer.Committed()
	w.memory.count(0)
	w.invalidate(p.touched &^ tracker.DirtyOutbox)
	batch := w.batch
	w.batch, w.spare = w.spare, nil
	for _, c := range batch {
		w.conclude(c)
	}
	clear(batch)
	w.spare = batch[:0]
	// Waiters are woken after the callers that made the change have their answers.
	if p.touched&tracker.DirtyOutbox != 0 {
		w.h.shard.deliver(w.h.workspace, tracker.DirtyOutbox, p.queued)
	}
	w.engine.waits.wake(w.h.workspace, wakes)
	if hasEvents {
		w.engine.notify(w.h.workspace)
	}
	w.runWaiting()
}

// invalidate invalidates what is derived from changed rows. It is called before the
// answers are sent: after the answer to a deletion every request must see its effect.
func (w *workspaceActor) invalidate(touched storage.DirtyFlags) {
	if touched&tracker.DirtyReadOnly != 0 {
		w.h.shard.readOnlyChanged(w.h.workspace)
	}
	if touched&tracker.DirtyAccess != 0 {
		w.engine.generations.bump(w.h.workspace)
		w.engine.notify(w.h.workspace) // some followers of events may have lost their rights
	}
	if touched&tracker.DirtyTimers != 0 {
		w.h.shard.wake()
	}
	if touched&(tracker.DirtyOutbox|tracker.DirtyWebhooks) != 0 {
		w.h.shard.deliver(w.h.workspace, touched, nil)
	}
}

// refuseUnapplied refuses the sealed batch, which is certainly not applied.
func (w *workspaceActor) refuseUnapplied() {
	w.discard()
	w.engine.stats.refused[refusedReplicator].Add(uint64(len(w.batch)))
	if w.h.leaving {
		w.refuseBatch(errNotServed()) // the next owner can make it
	} else {
		w.refuseBatch(tracker.NotApplied("The change could not be replicated."))
	}
}

func (w *workspaceActor) refuseBatch(err error) {
	batch := w.batch
	w.batch, w.answers = nil, 0
	for _, c := range batch {
		w.refuse(c, err)
	}
}

// doubt stops the workspace from relying on what it reads: the batch may be applied at
// any later time of this epoch.
func (w *workspaceActor) doubt(touched storage.DirtyFlags) {
	w.engine.lists.drop(w.h.workspace)
	if w.h.leaving {
		return // the claim of the next owner fences the batch off
	}
	if !w.h.doubtful {
		w.h.doubtful = true
		w.h.latch.hold()
	}
	w.h.doubted |= touched
	w.invalidate(touched)
}

// emptyBatch is a Pebble batch without operations.
var emptyBatch = make([]byte, 12)

// resolveDoubt proposes an empty batch if a batch is in doubt. Batches are applied in order,
// so when the empty one is applied, the one in doubt was applied before it or never
// will be. It is tried at once and then by each command that arrives, which limits the
// load on a replicator in trouble.
func (w *workspaceActor) resolveDoubt() {
	if w.h.doubtful && w.proposal == nil {
		w.submit(&proposal{settles: true}, emptyBatch)
	}
}

func (w *workspaceActor) settled(p *proposal) {
	if p.err != nil || w.h.leaving {
		w.memory.giveUp()
		waiting := w.waiting
		w.waiting = nil
		for _, c := range waiting {
			w.refuse(c, tracker.NotApplied("The outcome of an earlier change of the workspace is not known yet."))
		}
		return
	}
	if w.h.doubtful {
		w.invalidate(w.h.doubted)
		w.engine.waits.wakeAll(w.h.workspace) // the batch in doubt may have changed anything
		w.engine.notify(w.h.workspace)
		w.h.doubtful, w.h.doubted = false, 0
		w.unhold()
	}
	w.runWaiting()
}
