package tracker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"switchyard/storage"
)

// WriteBuffer is the state that a workspace's goroutine keeps between commands: the open
// batch that its commands write to one after another, the workspace's counters and
// caches. It is owned by that goroutine.
type WriteBuffer struct {
	store    *storage.Tx
	random   io.Reader
	counters counters
	broken   error // a roll-back failed: the open batch has writes that it should not have
	// seen is set once the workspace's row has been seen; armed holds the sweeping
	// timers that are known to be set. Both only save look-ups.
	seen  bool
	armed sweeps
	event []byte // scratch for encoding events
	// events are the events of the running command whose data the answer may begin
	// with.
	events []eventNote
	keyed  bool   // the running command's answer is kept for an idempotency key
	past   []byte // scratch for encoding history
	// closeLimit is the number of issues that a command may close by the rules of teams; see
	// runCascade.
	closeLimit int
	teams      knownTeams
	// recent holds the titles of issues that the search index does not cover.
	recent recentTitles
	title  string // the title whose terms are cached in terms
	terms  []term
	// tails is the node's memory for such titles. A tail of indexFew issues is indexed, and one of
	// indexText bytes at once.
	tails     *Tails
	indexFew  int
	indexText int
	// hooks are the workspace's webhooks; policy decides which addresses they may have.
	hooks  knownHooks
	policy WebhookPolicy
	// queued are the webhooks with deliveries in the open batch. A failed command may
	// have added some without deliveries.
	queued    []storage.ID
	wakes     []Wake // of the open batch
	work      SessionWork
	hasEvents bool // the open batch may have events
	queue     queueHeads
	relations knownRelations
	// suspended are the suspended scopes of sessions.
	suspended suspendedScopes
	// counted says how far the sessions are counted.
	counted countedSessions
	// leasesDue is the time by which leases are checked; zero if it is not known.
	leasesDue time.Time
	// operator holds the operator's settings; nil means the defaults.
	operator *AgentSettings
	// format returns the format in which rows are written.
	format   func() storage.Format
	claimers ClaimersWaiting
	schemas  knownSchemas
	// defaults are the operator's limits, and limits those that hold for the workspace; nil:
	// they have to be read.
	defaults Limits
	limits   *effectiveLimits
	creates  createRate
	// forbidden is the error for changes in read-only mode; nil: changes are allowed.
	forbidden *Error
	countRows int // number of rows that countBytesOp counts at a time
	// from and to are the values of the workspace's id clock before and after the sealed
	// batch.
	from, to uint64
}

// maxScratch is the size in bytes of the largest buffer for encoding that stays with a workspace.
const maxScratch = 64 << 10

// NewWriteBuffer returns the write buffer of a workspace over its state.
func NewWriteBuffer(store *storage.Tx, random io.Reader) *WriteBuffer {
	store.Measure(meter)
	return &WriteBuffer{store: store, random: random, counters: counters{known: map[counterKey]*counter{}}, closeLimit: maxAutoClosed, countRows: countStep, indexFew: indexFew, indexText: indexText, format: newestFormat}
}

// Configure sets the operator's settings; nil means the defaults.
func (l *WriteBuffer) Configure(s *AgentSettings) { l.operator = s }

// newestFormat is the format where nothing tells another one.
func newestFormat() storage.Format { return storage.FormatNewest }

// WriteFormat sets the way to learn of the format in which rows are written, which may go up;
// nil means the newest one.
func (l *WriteBuffer) WriteFormat(current func() storage.Format) {
	if current != nil {
		l.format = current
	}
}

// SeeClaimers sets the way to learn of the claims that wait; nil means there are none.
func (l *WriteBuffer) SeeClaimers(waiting ClaimersWaiting) { l.claimers = waiting }

// Remember sets the node's memory for tails of search indexes.
func (l *WriteBuffer) Remember(t *Tails) { l.tails, l.recent.tails = t, t }

// PanicError reports a command that panicked. Its writes are rolled back.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Run executes one command at the end of the open batch. A command that fails or panics
// leaves no writes, nor does one that asks for that with Reply.undo. The answer may be sent only after the batch is committed. That
// holds for the answer of a failed command, too: the command may have read uncommitted
// rows.
func (l *WriteBuffer) Run(op *Op, req *Request, in any, now time.Time) (reply Reply, err error) {
	l.store.Begin() // before the command's view of it is made
	mark, counted, wakes, work := l.store.Mark(), l.counters.bytes, len(l.wakes), l.work
	l.counters.begin()
	l.recent.begin()
	l.queue.raised, l.suspended.changed, l.counted.changed = false, false, false
	l.events, l.keyed = l.events[:0], req.Idempotency != nil
	l.store.Recount()
	below, lived := l.store.CountingBelow(), l.seen
	tx := &Tx{
		View:   View{View: l.store.View, Caller: &req.Caller, now: now, operator: l.operator, claimers: l.claimers, final: req.Final},
		buffer: l, began: l.store.Size(), audits: op.Audits, limited: l.limited(op, req),
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			reply = Reply{}
		}
		if err != nil || reply.undo {
			l.counters.rollback()
			l.recent.rollback()
			l.wakes = l.wakes[:wakes]
			l.work.undo(work)
			l.store.CountBelow(below)
			l.seen = l.seen && lived // the command may have created the workspace
			if l.queue.raised {
				l.queue.forget() // the command may have cached queue heads that were rolled back
			}
			if l.counted.changed {
				l.counted.forget()
				l.seen = false // the next command reads it before it stores a session
			}
			if l.suspended.changed {
				l.suspended.forget()
			}
			if failed := l.store.Rollback(mark); failed != nil {
				l.broken = failed
				err = errors.Join(err, failed)
			}
		}
		l.store.Release()
	}()
	if err := tx.setClock(now); err != nil {
		return Reply{}, err
	}
	// The check of rights comes before a kept answer is returned and before anything is
	// changed.
	if err := tx.admit(op, req, in); err != nil {
		return Reply{}, err
	}
	if !req.answered { // else the answer that is kept is the command's own, of its last batch
		if earlier, found, err := tx.replay(op, req); err != nil || found {
			return earlier, err
		}
	}
	if !op.WithoutWorkspace {
		if err := l.exists(tx); err != nil {
			return Reply{}, err
		}
	}
	if err := l.mayChange(req); err != nil {
		return Reply{}, err
	}
	if err := tx.admitLane(op); err != nil {
		return Reply{}, err
	}
	if reply, err = op.command(tx, in); err != nil {
		return Reply{}, err
	}
	if err := tx.runCascade(); err != nil {
		return Reply{}, err
	}
	if err := tx.wakeSessions(); err != nil {
		return Reply{}, err
	}
	if err := tx.settleKeys(); err != nil {
		return Reply{}, err
	}
	if err := tx.writeAudit(req); err != nil {
		return Reply{}, err
	}
	if (!reply.More || reply.soFar) && reply.Wait == nil && !reply.undo && !reply.unkept {
		err = l.remember(tx, op, req, reply, l.store.Wrote(mark))
	}
	if most := cmp.Or(op.MaxWrites, maxCommandBytes); err == nil && l.store.Written(mark)+l.counters.bytes-counted > most {
		err = tooMuch(most)
	}
	if err == nil {
		creates := l.creates
		if err = l.charge(tx, op, req); reply.undo {
			l.creates = creates
		}
	}
	req.answered = req.answered || err == nil && reply.soFar
	if err == nil && !reply.undo {
		l.armed |= tx.armed
		if tx.leasesDue != nil {
			l.leasesDue = *tx.leasesDue
		}
	}
	return reply, err
}

// maxCommandBytes limits the bytes that one command writes, so that the batch with it
// fits into one entry of the replication log.
const maxCommandBytes = 10 << 20

func tooMuch(most int) error {
	return &Error{
		Code: CodePayloadTooLarge, Message: fmt.Sprintf("The request would write more than %d MiB at once.", most>>20),
		Hint: "Nothing was changed. Ask for less at a time.",
	}
}

// exists refuses a command that was admitted while the workspace existed and runs after
// its deletion. Its rows would have no owner.
func (l *WriteBuffer) exists(tx *Tx) error {
	if l.seen || tx.Workspace().IsService() {
		return nil
	}
	lives, err := tx.Has(workspaceTable, nil)
	if err != nil {
		return fmt.Errorf("look for the workspace: %w", err)
	}
	if !lives {
		return NotFound("workspace")
	}
	l.seen = true
	if _, err := tx.sessionsCounted(); err != nil {
		return err
	}
	return l.resumeCount(tx)
}

// remember keeps the answer of a command for its idempotency key, if it has one.
func (l *WriteBuffer) remember(tx *Tx, op *Op, req *Request, reply Reply, wrote bool) error {
	if req.Idempotency == nil {
		return nil
	}
	kept, err := l.keepsAnswer(tx, op, req, wrote, len(reply.Body))
	if err != nil || !kept {
		return err
	}
	return tx.remember(op, req, reply)
}

// forget drops all caches of the workspace, and counters that are not yet written. A
// command that calls it must not fail afterwards.
func (l *WriteBuffer) forget() {
	l.counters.forget()
	l.limits = nil
	l.seen, l.armed = false, 0
	l.leasesDue = time.Time{}
	l.relations = relationsUnknown
	l.queue.forget()
	l.suspended.forget()
	l.counted.forget()
	l.teams.forget()
	l.recent.forget()
	l.hooks.forget()
}

// Seal writes the changed counters into the batch, once for all its commands, and
// returns the batch in its replicated form, or nil if there is nothing to commit. The
// bytes are valid until Committed or Discard. After an error the batch must be
// discarded.
func (l *WriteBuffer) Seal() ([]byte, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	// A batch that erases the workspace sets all flags, and leaves no clock.
	dirty := l.Dirty()
	l.from, l.to = l.counters.moveClock(dirty&DirtySets != 0 && dirty != ^storage.DirtyFlags(0))
	if err := l.counters.seal(l.store); err != nil {
		return nil, err
	}
	if l.store.Empty() {
		return nil, nil
	}
	return l.store.Repr(), nil
}

// Versions returns the workspace's id clock before and after the sealed batch; see
// IssueSets.
func (l *WriteBuffer) Versions() (from, to uint64) { return l.from, l.to }

// Empty reports whether there is nothing to commit: no command since the last batch
// wrote anything, so the answers depend on committed state alone.
func (l *WriteBuffer) Empty() bool {
	return l.store.Empty() && len(l.counters.dirty) == 0 && l.broken == nil
}

// Dirty returns the kinds of rows that the open batch changes; see the dirty flags.
func (l *WriteBuffer) Dirty() storage.DirtyFlags { return l.store.Dirty() }

// Queued returns the webhooks that the open batch may have deliveries for. The slice is
// valid until the next command.
func (l *WriteBuffer) Queued() []storage.ID { return l.queued }

// WakeUps returns the topics to notify once the open batch is committed. The slice is
// valid until the next command.
func (l *WriteBuffer) WakeUps() []Wake { return l.wakes }

// Used says that a request has already used one of the changes that WakeUps returns, by its
// index.
func (l *WriteBuffer) Used(i int) { l.wakes[i] = Wake{} }

// HasEvents reports whether the open batch may have events. The answer is valid until
// Committed or Discard.
func (l *WriteBuffer) HasEvents() bool { return l.hasEvents }

// Ops returns the number of keys that the open batch writes.
func (l *WriteBuffer) Ops() int { return l.store.Ops() }

// Size returns the size of the open batch in bytes, with the counters that Seal will
// add.
func (l *WriteBuffer) Size() int { return l.store.Size() + l.counters.bytes }

// Committed begins the next batch after the open one was applied.
func (l *WriteBuffer) Committed() {
	if l.Dirty()&DirtyAccess != 0 {
		l.teams.forget()
	}
	if l.Dirty()&DirtyWebhooks != 0 {
		l.hooks.forget()
	}
	l.recent.committed()
	l.store.Reset()
	l.queued = l.queued[:0]
	l.counters.trim()
	l.wakes, l.hasEvents = l.wakes[:0], false
	l.work.undo(SessionWork{})
}

// Discard drops the open batch, which was refused or whose outcome is unknown, and
// every cache that may depend on it.
func (l *WriteBuffer) Discard() {
	l.store.Reset()
	l.queued = l.queued[:0]
	l.wakes, l.hasEvents = l.wakes[:0], false
	l.work.undo(SessionWork{})
	l.forget()
	l.broken = nil
}

// Close releases the batch, and the memory of the tail.
func (l *WriteBuffer) Close() error {
	l.recent.forget()
	return l.store.Close()
}
