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
	counters map[counterKey]*counter
	dirty    []*counter    // changed since the last Seal
	undo     []counterUndo // changes of the running command
}

type counterKey struct {
	table   storage.TableID
	subject storage.ID
}

type counter struct {
	key   counterKey
	n     uint64
	dirty bool
}

type counterUndo struct {
	c *counter
	n uint64
}

// maxCounters bounds the cached counters of a workspace; past it they are read
// again from their rows.
const maxCounters = 1024

// NewLedger makes the ledger of a workspace over its state.
func NewLedger(store *storage.Tx, random io.Reader) *Ledger {
	return &Ledger{store: store, random: random, counters: map[counterKey]*counter{}}
}

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
	mark := l.store.Mark()
	l.undo = l.undo[:0]
	tx := &Tx{View: View{View: l.store.View, Caller: &req.Caller, now: now}, ledger: l}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			reply = Reply{}
			for i := len(l.undo) - 1; i >= 0; i-- {
				l.undo[i].c.n = l.undo[i].n
			}
			err = errors.Join(err, l.store.Rollback(mark))
		}
	}()
	if tx.now, err = l.clock(now, tx); err != nil {
		return Reply{}, err
	}
	if earlier, found, err := tx.replay(op, req); err != nil || found {
		return earlier, err
	}
	reply, err = op.command(tx, in)
	if err != nil || reply.More {
		return reply, err
	}
	return reply, tx.remember(op, req, reply)
}

// counter gives the cached value of a counter, read from its row the first time.
func (l *Ledger) counter(tx *Tx, key counterKey) (uint64, error) {
	c, err := l.load(&tx.View, key)
	if err != nil {
		return 0, err
	}
	return c.n, nil
}

func (l *Ledger) load(v *View, key counterKey) (*counter, error) {
	if c := l.counters[key]; c != nil {
		return c, nil
	}
	n, err := v.Number(key.table, key.subject[:])
	if err != nil {
		return nil, fmt.Errorf("read a counter: %w", err)
	}
	c := &counter{key: key, n: n}
	l.counters[key] = c
	return c, nil
}

// set changes a counter that was loaded before.
func (l *Ledger) set(key counterKey, n uint64) {
	c := l.counters[key]
	l.undo = append(l.undo, counterUndo{c, c.n})
	c.n = n
	if !c.dirty {
		c.dirty = true
		l.dirty = append(l.dirty, c)
	}
}

// Seal writes the changed counters into the batch, once for all its commands, and
// gives the batch as it is replicated; nil when there is nothing to commit. The
// bytes are valid until Committed or Discard.
func (l *Ledger) Seal() ([]byte, error) {
	for _, c := range l.dirty {
		if err := l.store.SetNumber(c.key.table, c.key.subject[:], c.n); err != nil {
			return nil, err
		}
		c.dirty = false
	}
	l.dirty = l.dirty[:0]
	if l.store.Empty() {
		return nil, nil
	}
	return l.store.Repr(), nil
}

// Touched says which kinds of rows the open batch changes; see the Touch bits.
func (l *Ledger) Touched() storage.Touch { return l.store.Touched() }

// Ops and Size measure the open batch: keys written, and bytes.
func (l *Ledger) Ops() int { return l.store.Ops() }

// Size of the open batch in bytes.
func (l *Ledger) Size() int { return l.store.Size() }

// Committed starts the next batch after this one was applied.
func (l *Ledger) Committed() {
	l.store.Reset()
	if len(l.counters) > maxCounters {
		clear(l.counters)
	}
}

// Discard drops the open batch, and with it everything remembered of it: its
// fate is unknown or it was refused.
func (l *Ledger) Discard() {
	l.store.Reset()
	clear(l.counters)
	l.dirty = l.dirty[:0]
}

// Close gives the batch back.
func (l *Ledger) Close() error { return l.store.Close() }
