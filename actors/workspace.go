package actors

import (
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// workspaceActor runs the commands of one workspace, one after another, into one
// open batch. Everything in it is owned by the actor.
type workspaceActor struct {
	engine *Engine
	h      *handle
	self   *actor.PID
	buffer *tracker.WriteBuffer

	// running is the command in hand.
	running *call
	// batch are the commands that wrote into the open batch, or saw what it holds;
	// once proposal is set, those of the batch that is being replicated.
	batch    []*call
	spare    []*call // an empty slice for the next batch
	answers  int     // bytes of the answers in the open batch
	proposal *proposal
	// waiting are the commands that came while a batch was being replicated; they
	// form the next, or while there was no memory for the first of them. Bounded by
	// Limits.WorkspaceCommands.
	waiting []*call
	// memory is that of the open batch and of the next command.
	memory changeShare
	// flushing: a flush is in the mailbox.
	flushing bool
}

// The messages of the actor, beside *call and *proposal.
type (
	// flush closes the open batch. The actor sends it to itself after the first command
	// of a batch, so that commands already in the mailbox join the batch.
	flush struct{}
	// withdrawn reports that the caller of a command has withdrawn it.
	withdrawn struct{}
	// lost reports that the shard is no longer owned. Its sender holds the latch.
	lost struct{}
	// overdue reports that lostWait has passed since the shard was lost.
	overdue struct{ *proposal }
)

// lostWait is how long requests whose batch is being replicated wait for its outcome after the shard
// was lost. It comes at once where a node hands a shard over, and may not come from a disk that hangs.
const lostWait = time.Second

// Receive handles one message. A panic in a command does not get here, the write buffer
// recovers it; any other makes the library replace the actor by a new one, which
// goes on with the mailbox.
func (w *workspaceActor) Receive(ctx actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			w.engine.stats.panics.Add(1)
			w.engine.log.Error("workspace actor panicked", "workspace", w.h.workspace.String(), "panic", p, "stack", string(debug.Stack()))
			panic(p)
		}
	}()
	switch m := ctx.Message().(type) {
	case *call:
		w.accept(m)
	case flush:
		w.flushing = false
		w.propose()
	case *proposal:
		w.decided(m)
	case granted:
		if m.changeTurn == w.memory.turn {
			w.memory.granted()
			w.runWaiting()
		}
	case withdrawn:
		w.passWithdrawn()
	case lost:
		w.lose()
	case overdue:
		if m.proposal == w.proposal {
			w.refuseBatch(errInFlight())
		}
	case *actor.Started:
		w.self = ctx.Self()
		w.open()
		w.resolveDoubt() // what an incarnation before left in doubt
	case *actor.Restarting:
		w.crashed()
	case *actor.Stopped:
		w.close()
		w.engine.actors.leave()
	}
}

func (w *workspaceActor) accept(c *call) {
	if w.changesRights(c) {
		w.propose()
	}
	switch {
	case w.h.leaving:
		w.refuse(c, errNotServed())
	case w.proposal != nil, w.memory.turn != nil:
		w.waiting = append(w.waiting, c)
	case w.h.doubtful:
		w.waiting = append(w.waiting, c)
		w.resolveDoubt()
	case !w.run(c):
		w.waiting = append(w.waiting, c)
	default:
		w.memory.giveNext() // the command did not run
	}
}

// passWithdrawn has the commands go on that wait behind a withdrawn one for the memory that it needed.
func (w *workspaceActor) passWithdrawn() {
	if w.memory.turn != nil && len(w.waiting) > 0 && w.waiting[0].isWithdrawn() {
		w.memory.giveUp()
		w.runWaiting()
	}
}

// begins readies the workspace for a command, or answers the command that can't run any more.
func (w *workspaceActor) begins(c *call) bool {
	if !c.markTaken() {
		w.drop(c)
		return false
	}
	if w.outdated(c) && !w.admitsAgain(c) {
		w.refuse(c, errOutdated)
		return false
	}
	modes, err := w.h.shard.readOnly()
	if err != nil {
		c.err = err
		w.answer(c)
		return false
	}
	w.buffer.Forbid(modes.Refusal(w.h.workspace))
	return true
}

// granted tells the actor that there is memory for its next command.
func (w *workspaceActor) granted(turn *changeTurn) { w.engine.root.Send(w.self, granted{turn}) }

// run carries out a command in the open batch. It returns false if there is no memory for the command, which is the
// first to run when there is. A flush that is in the mailbox closes the open batch meanwhile.
func (w *workspaceActor) run(c *call) bool {
	if c.isWithdrawn() {
		w.drop(c)
		return true
	}
	if !w.memory.admits(c, w.granted) {
		return false
	}
	if executed, ok := w.execute(c); !executed {
		return ok
	}
	if w.buffer.Empty() {
		// Nothing waits to be committed, so there is nothing this answer depends on.
		c.unproven = true
		w.conclude(c)
		return true
	}
	w.keep(c)
	switch {
	case c.reply.More, w.full():
		// A command that continues in the next batch must not be interrupted by another.
		w.propose()
	case !w.flushing:
		w.flushing = true
		w.engine.root.Send(w.self, flush{})
	}
	return true
}

// execute has a command write into the open batch. ok is false if there is no memory for it. A command that can't run any
// more is answered: it is not executed then.
func (w *workspaceActor) execute(c *call) (executed, ok bool) {
	if c.req.BodySize < largeBody {
		if w.memory.memory.isOver() {
			w.engine.running <- struct{}{} // no command that runs waits for another
			defer func() { <-w.engine.running }()
		}
		if !w.memory.admitsSmall(w.granted) {
			return false, false
		}
	}
	if !w.begins(c) {
		return false, true
	}
	w.write(c)
	return true, true
}

// maxBatchAnswers is the number of bytes of answers at which a batch is closed. A command may
// have a large answer and write little, and its answer is kept until the batch is committed.
const maxBatchAnswers = 8 << 20

// keep adds a command that was carried out to the open batch.
func (w *workspaceActor) keep(c *call) {
	w.batch = append(w.batch, c)
	w.answers += len(c.reply.Body)
}

// full reports whether the open batch takes no more commands.
func (w *workspaceActor) full() bool {
	limits := &w.engine.cfg.Limits
	return w.buffer.Size() >= limits.BatchBytes || len(w.batch) >= limits.BatchCommands || w.answers >= maxBatchAnswers
}

// write has a command write into the open batch.
func (w *workspaceActor) write(c *call) {
	w.running = c
	if c.req.Spent.On {
		c.took = time.Now()
	}
	before := w.buffer.Size()
	c.reply, c.err = w.buffer.Run(c.op, &c.req, c.in, w.engine.cfg.Clock())
	w.running = nil
	size := w.buffer.Size()
	w.memory.ran(c, size-before, size)
	if c.req.Spent.On {
		c.ran = time.Now()
	}
}

// runWaiting runs the commands that waited, until they make a batch.
func (w *workspaceActor) runWaiting() {
	n := 0
	for n < len(w.waiting) && w.proposal == nil && w.memory.turn == nil && !w.h.doubtful {
		c := w.waiting[n]
		if w.changesRights(c) {
			w.propose()
			continue
		}
		w.waiting[n] = nil // an actor that panics answers the others
		n++
		if !w.run(c) {
			n--
			w.waiting[n] = c
		}
	}
	w.waiting = append(w.waiting[:0], w.waiting[n:]...)
	clear(w.waiting[len(w.waiting):cap(w.waiting)])
	if len(w.waiting) == 0 || w.h.doubtful {
		w.memory.giveNext() // the command for which it was taken did not run
	}
}

// conclude answers a command whose batch is committed or held nothing, unless it
// asked to be run again.
func (w *workspaceActor) conclude(c *call) {
	switch {
	case c.err != nil:
		w.refuse(c, c.err) // in read-only mode, say, which may have begun since an earlier part
	case !c.reply.More:
		w.answer(c)
	case c.unproven:
		c.err = errors.New("the operation asked to be run again but had written nothing")
		w.answer(c)
	case w.h.leaving:
		c.partial = true
		w.refuse(c, errNotServed())
	case w.engine.closing.Load():
		c.partial = true
		w.refuse(c, errClosing())
	default:
		c.partial, c.reply = true, tracker.Reply{}
		w.waiting = slices.Insert(w.waiting, 0, c)
	}
}

// refuse answers a command whose run, if it had one, was not committed.
func (w *workspaceActor) refuse(c *call, err error) {
	if c.partial && outcome(err) == "not_applied" {
		var failure *tracker.Error
		errors.As(err, &failure)
		err = unknownAfter(failure, "The change was made in part. A repeat of the request continues it, or answers with that part.")
	}
	c.err = err
	w.answer(c)
}

// answer gives the answer and counts the command off, in the order in which a
// caller's next command finds its place free. The call is its caller's afterwards.
func (w *workspaceActor) answer(c *call) {
	w.drop(c)
	r := c.waiter
	c.answered <- struct{}{}
	if r != nil {
		w.engine.waits.rouse(r)
	}
}

// drop counts a command off.
func (w *workspaceActor) drop(c *call) {
	c.giveUp()
	w.h.shard.counted()
	w.h.latch.leave()
	w.endIfLast()
}

// unhold releases a hold of the latch.
func (w *workspaceActor) unhold() {
	w.h.latch.unhold()
	w.endIfLast()
}

// endIfLast ends the actor of a lost shard when nothing of it is left to do.
func (w *workspaceActor) endIfLast() {
	if w.h.leaving && w.h.latch.shut() {
		w.engine.root.Poison(w.self)
	}
}

// lose refuses all requests but those whose batch is being replicated: the others changed nothing.
func (w *workspaceActor) lose() {
	w.h.leaving = true
	w.refuseWaiting()
	if p := w.proposal; p != nil {
		root, self := w.engine.root, w.self
		p.overdue = time.AfterFunc(lostWait, func() { root.Send(self, overdue{p}) })
	} else {
		w.refuseBatch(errNotServed())
		w.discard()
	}
	if w.h.doubtful {
		w.h.doubtful = false
		w.unhold()
	}
	w.unhold() // the sender's
}

// crashed is the last this incarnation does after a panic.
func (w *workspaceActor) crashed() {
	w.engine.lists.drop(w.h.workspace)
	if w.running != nil {
		w.refuse(w.running, internal())
		w.running = nil
	}
	if w.proposal != nil {
		w.doubt(w.proposal.touched)
	}
	w.abandon()
	w.close()
}

// abandon answers every command: those of a batch that is being replicated may
// have been applied, the others were not.
func (w *workspaceActor) abandon() {
	if w.proposal != nil {
		w.refuseBatch(errInFlight())
	} else {
		w.refuseBatch(errNotServed())
	}
	w.refuseWaiting()
}

// refuseWaiting answers the commands that wait for the outcome of a batch.
func (w *workspaceActor) refuseWaiting() {
	w.memory.giveUp()
	waiting := w.waiting
	w.waiting = nil
	for _, c := range waiting {
		if c != nil { // else it was run when the actor panicked
			w.refuse(c, errNotServed())
		}
	}
}

// open starts with an empty batch over the workspace's state.
func (w *workspaceActor) open() {
	w.buffer = tracker.NewWriteBuffer(storage.NewTx(w.engine.state, w.h.shard.number, w.h.workspace), w.engine.cfg.Random)
	w.buffer.SetWebhookPolicy(w.engine.cfg.Webhooks.Policy)
	w.buffer.Configure(&w.engine.cfg.Agents)
	w.buffer.WriteFormat(w.engine.cfg.Format)
	w.buffer.Remember(w.engine.tails)
	w.buffer.SeeClaimers(w.engine.claimers)
	w.buffer.Limit(&w.engine.cfg.Workspace)
	w.memory.memory = &w.engine.changes
}

// discard drops the open batch.
func (w *workspaceActor) discard() {
	w.buffer.Discard()
	w.memory.count(0)
}

// close gives the write buffer's memory back; a batch that is being replicated still
// uses it, and it is left to the garbage collector then.
func (w *workspaceActor) close() {
	if w.memory.memory != nil {
		w.memory.close()
	}
	if w.buffer == nil || w.proposal != nil {
		return
	}
	if err := w.buffer.Close(); err != nil {
		w.engine.log.Warn("close a workspace's batch", "workspace", w.h.workspace.String(), "error", err)
	}
	w.buffer = nil
}
