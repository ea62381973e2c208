package tracker

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"switchyard/storage"
)

// Ledger is what a workspace's goroutine keeps between commands: the open batch
// that its commands write into one after another, and the workspace's counters.
// It is owned by that goroutine.
type Ledger struct {
	store    *storage.Tx
	random   io.Reader
	counters counters
	broken   error // a roll-back failed: the open batch is not what its commands wrote
	// lives is set once the workspace's row was seen; armed are the sweeping timers
	// seen to be set. Both only save look-ups.
	lives bool
	armed sweeps
	event []byte // scratch for encoding events
	// events are those of the running command that its answer may begin with.
	events []eventNote
	keyed  bool   // the running command's answer is kept for a key
	past   []byte // scratch for encoding history
	// share is how many issues a command closes by the rules of teams; see settle.
	share int
	teams knownTeams
	// recent are the titles that the search index lacks.
	recent recentTitles
	title  string // whose terms are terms
	terms  []term
	stems  stems
	// hooks are the workspace's webhooks; policy says where they may lead.
	hooks  knownHooks
	policy WebhookPolicy
	// queued are the webhooks that the open batch has deliveries for, and perhaps some
	// that a command which failed had.
	queued []storage.ID
	wakes  []Wake // of the open batch
	told   bool   // the open batch has events
	queue  queueFloors
	// leasesDue is by when the leases are looked at; zero: not known.
	leasesDue time.Time
	// operator are the operator's settings; nil: the defaults.
	operator *AgentSettings
	schemas  knownSchemas
	limits   Limits
	portion  int // how many rows countBytesOp counts at a time
}

// NewLedger makes the ledger of a workspace over its state.
func NewLedger(store *storage.Tx, random io.Reader) *Ledger {
	store.Measure(meter)
	return &Ledger{store: store, random: random, counters: counters{known: map[counterKey]*counter{}}, share: maxAutoClosed, portion: countPortion}
}

// Configure gives the ledger the operator's settings; nil are the defaults.
func (l *Ledger) Configure(s *AgentSettings) { l.operator = s }

// PanicError is a command that panicked. Its writes were undone.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Run carries out one command at the end of the open batch. A command that fails
// or panics leaves nothing behind. The answer may be given only after the batch
// is committed; that of a failed command, too, since it may have seen uncommitted
// rows.
func (l *Ledger) Run(op *Op, req *Request, in any, now time.Time) (reply Reply, err error) {
	mark, counted, wakes := l.store.Mark(), l.counters.bytes, len(l.wakes)
	l.counters.begin()
	l.recent.begin()
	l.queue.raised = false
	l.events, l.keyed = l.events[:0], req.Idempotency != nil
	l.store.Recount()
	below, lived := l.store.CountingBelow(), l.lives
	tx := &Tx{
		View:   View{View: l.store.View, Caller: &req.Caller, now: now, operator: l.operator, final: req.Final},
		ledger: l, began: l.store.Size(),
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			reply = Reply{}
			l.counters.rollback()
			l.recent.rollback()
			l.wakes = l.wakes[:wakes]
			l.store.CountBelow(below)
			l.lives = l.lives && lived // what it found out may have come with writes
			if l.queue.raised {
				l.queue.forget() // it saw a queue that was not to be
			}
			if failed := l.store.Rollback(mark); failed != nil {
				l.broken = failed
				err = errors.Join(err, failed)
			}
		}
	}()
	if tx.now, err = l.clock(now, tx); err != nil {
		return Reply{}, err
	}
	// Before anything that is kept is told, and before anything is changed.
	if err := tx.admit(op, req, in); err != nil {
		return Reply{}, err
	}
	if earlier, found, err := tx.replay(op, req); err != nil || found {
		return earlier, err
	}
	if !op.Founding {
		if err := l.exists(tx); err != nil {
			return Reply{}, err
		}
	}
	if err := tx.admitLane(op); err != nil {
		return Reply{}, err
	}
	if reply, err = op.command(tx, in); err != nil {
		return Reply{}, err
	}
	if err := tx.settle(); err != nil {
		return Reply{}, err
	}
	if !reply.More && reply.Wait == nil {
		err = l.remember(tx, op, req, reply, l.store.Wrote(mark))
	}
	if err == nil && l.store.Written(mark)+l.counters.bytes-counted > maxCommandBytes {
		err = tooMuch()
	}
	if err == nil {
		err = l.charge(tx, op, req)
	}
	if err == nil {
		l.armed |= tx.armed
		if tx.leasesDue != nil {
			l.leasesDue = *tx.leasesDue
		}
	}
	return reply, err
}

// maxCommandBytes bounds what one command writes, so that it and the batch it ends
// up in fit into one entry of the replication log.
const maxCommandBytes = 10 << 20

func tooMuch() error {
	return &Error{
		Code: CodePayloadTooLarge, Message: fmt.Sprintf("The request would write more than %d MiB at once.", maxCommandBytes>>20),
		Hint: "Nothing was changed. Ask for less at a time.",
	}
}

// exists refuses a command that was let in while the workspace still was there
// and is carried out after its end: it would leave rows that nobody owns.
func (l *Ledger) exists(tx *Tx) error {
	if l.lives || tx.Workspace() == storage.DirectoryID {
		return nil
	}
	lives, err := tx.Has(workspaceTable, nil)
	if err != nil {
		return fmt.Errorf("look for the workspace: %w", err)
	}
	if !lives {
		return NotFound("workspace")
	}
	l.lives = true
	return l.resumeCount(tx)
}

// remember keeps the answer of a command for its key, if there is one.
func (l *Ledger) remember(tx *Tx, op *Op, req *Request, reply Reply, wrote bool) error {
	if req.Idempotency == nil {
		return nil
	}
	kept, err := l.keeps(tx, op, req, wrote, len(reply.Body))
	if err != nil || !kept {
		return err
	}
	return tx.remember(op, req, reply)
}

// forget drops what is remembered of the workspace, with counters not yet
// written. A command that calls it may not fail afterwards.
func (l *Ledger) forget() {
	l.counters.forget()
	l.lives, l.armed = false, 0
	l.leasesDue = time.Time{}
	l.queue.forget()
	l.teams.forget()
	l.recent.forget()
	l.hooks.forget()
}

// Seal writes the changed counters into the batch, once for all its commands, and
// gives the batch as it is replicated; nil when there is nothing to commit. The
// bytes are valid until Committed or Discard. After an error the batch is of no
// use to any of its commands: Discard it.
func (l *Ledger) Seal() ([]byte, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if err := l.counters.seal(l.store); err != nil {
		return nil, err
	}
	if l.store.Empty() {
		return nil, nil
	}
	return l.store.Repr(), nil
}

// Clean tells whether there is nothing to commit: no command since the last batch
// wrote anything, so that the answers depend on committed state alone.
func (l *Ledger) Clean() bool {
	return l.store.Empty() && len(l.counters.dirty) == 0 && l.broken == nil
}

// Touched says which kinds of rows the open batch changes; see the Touch bits.
func (l *Ledger) Touched() storage.Touch { return l.store.Touched() }

// Queued gives the webhooks that the open batch may have deliveries for. It is
// valid until the next command.
func (l *Ledger) Queued() []storage.ID { return l.queued }

// Wakes tells who has something to look at once the open batch is committed. It is
// valid until the next command.
func (l *Ledger) Wakes() []Wake { return l.wakes }

// Told tells whether the open batch may have events. It is valid until Committed or
// Discard.
func (l *Ledger) Told() bool { return l.told }

// Ops and Size measure the open batch: keys written, and bytes.
func (l *Ledger) Ops() int { return l.store.Ops() }

// Size of the open batch in bytes, with what Seal will add.
func (l *Ledger) Size() int { return l.store.Size() + l.counters.bytes }

// Committed starts the next batch after this one was applied.
func (l *Ledger) Committed() {
	if l.Touched()&TouchesAccess != 0 {
		l.teams.forget()
	}
	if l.Touched()&TouchesWebhooks != 0 {
		l.hooks.forget()
	}
	l.recent.committed()
	l.store.Reset()
	l.queued = l.queued[:0]
	l.counters.trim()
	l.wakes, l.told = l.wakes[:0], false
}

// Discard drops the open batch, and with it everything remembered of it: its
// fate is unknown or it was refused.
func (l *Ledger) Discard() {
	l.store.Reset()
	l.queued = l.queued[:0]
	l.wakes, l.told = l.wakes[:0], false
	l.forget()
	l.broken = nil
}

// Close gives the batch back.
func (l *Ledger) Close() error { return l.store.Close() }
