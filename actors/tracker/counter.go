package tracker

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"switchyard/storage"
)

// counters are the counters of a workspace, owned by its goroutine. Each is read from
// its row once, changed in memory, and written once per batch however many commands
// changed it. A counter at zero has no row.
type counters struct {
	known map[counterKey]*counter
	dirty []*counter    // changed since the last seal
	undo  []counterUndo // changes of the running command
	bytes int           // approximate bytes that the dirty ones will write
	row   storage.Key   // scratch for keys
	value []byte        // scratch for values
}

// counterKey identifies a counter. Plain ones have a table and a subject; those of
// issueAggregateTable also have a kind and, if they count by a text, that text.
type counterKey struct {
	table   storage.TableID
	kind    aggregateKind
	subject storage.ID
	text    string
}

// appendTo appends the key fields of the counter's row.
func (k *counterKey) appendTo(b storage.Key) storage.Key {
	switch k.table {
	case issueAggregateTable:
		return k.appendAggregate(b)
	case queueCountTable:
		return k.appendQueueCount(b)
	}
	return b.ID(k.subject)
}

// amount is the value of a counter. A plain counter uses n alone; an aggregate counts n
// issues and sums their estimates in 128 bits: 2,048 estimates may exceed 64.
type amount struct {
	n       uint64
	sum, hi uint64
}

func (a *amount) add(b amount) {
	var carry uint64
	a.n += b.n
	a.sum, carry = bits.Add64(a.sum, b.sum, 0)
	a.hi += b.hi + carry
}

func (a *amount) sub(b amount) {
	var borrow uint64
	a.n -= b.n
	a.sum, borrow = bits.Sub64(a.sum, b.sum, 0)
	a.hi -= b.hi + borrow
}

// amountLen is the length of an aggregate's row: the count, then the sum, big endian.
const amountLen = 24

func (a *amount) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, a.n)
	b = binary.BigEndian.AppendUint64(b, a.hi)
	return binary.BigEndian.AppendUint64(b, a.sum)
}

func parseAmount(b []byte) (amount, error) {
	if len(b) != amountLen {
		return amount{}, fmt.Errorf("%w: aggregate of %d bytes", storage.ErrFormat, len(b))
	}
	return amount{n: binary.BigEndian.Uint64(b), hi: binary.BigEndian.Uint64(b[8:]), sum: binary.BigEndian.Uint64(b[16:])}, nil
}

type counter struct {
	key    counterKey
	now    amount
	sealed amount // the value in the row, or in the sealed batch
	dirty  bool
}

type counterUndo struct {
	c      *counter
	before amount
}

// maxCounters limits the cached counters of a workspace. Beyond it they are dropped and
// read again from their rows.
const maxCounters = 1024

// counterBytes is the most that a counter without a text takes in a batch.
const counterBytes = 80

// begin starts a command.
func (s *counters) begin() { s.undo = s.undo[:0] }

// rollback undoes the changes of the running command.
func (s *counters) rollback() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i].c.now = s.undo[i].before
	}
	s.undo = s.undo[:0]
}

// forget drops all counters, including unwritten changes.
func (s *counters) forget() {
	clear(s.known)
	s.dirty, s.undo, s.bytes = s.dirty[:0], s.undo[:0], 0
}

// trim keeps the cache within its limit. No counter may be dirty.
func (s *counters) trim() {
	if len(s.known) > maxCounters {
		clear(s.known)
	}
}

// load returns a counter; the first call reads it from its row.
func (s *counters) load(tx *Tx, key counterKey) (*counter, error) {
	if c := s.known[key]; c != nil {
		return c, nil
	}
	// The text may be a substring of a whole request or record, which the cache must
	// not keep alive.
	key.text = strings.Clone(key.text)
	c := &counter{key: key}
	s.row = key.appendTo(s.row[:0])
	var err error
	if key.table != issueAggregateTable && key.table != queueCountTable {
		c.now.n, err = tx.Number(key.table, s.row)
	} else if s.value, err = tx.Value(key.table, s.row, s.value[:0]); err == nil && s.value != nil {
		c.now, err = parseAmount(s.value)
	}
	if err != nil {
		return nil, fmt.Errorf("read a counter: %w", err)
	}
	c.sealed = c.now
	s.known[key] = c
	return c, nil
}

// number returns the value of a plain counter.
func (s *counters) number(tx *Tx, key counterKey) (uint64, error) {
	c, err := s.load(tx, key)
	if err != nil {
		return 0, err
	}
	return c.now.n, nil
}

// change returns a counter's value for the running command to change.
func (s *counters) change(tx *Tx, key counterKey) (*amount, error) {
	c, err := s.load(tx, key)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, counterUndo{c, c.now})
	if !c.dirty {
		c.dirty = true
		s.dirty = append(s.dirty, c)
		s.bytes += counterBytes + len(c.key.text)
	}
	return &c.now, nil
}

// moveClock gives the clock before and after the open batch. Where it must move and
// nothing has moved it yet it takes a step.
func (s *counters) moveClock(must bool) (from, to uint64) {
	clock := s.known[counterKey{table: clockTable}]
	if clock == nil {
		return 0, 0
	}
	if must && clock.now == clock.sealed {
		clock.now.n++
		if !clock.dirty {
			clock.dirty = true
			s.dirty = append(s.dirty, clock)
		}
	}
	return clock.sealed.n, clock.now.n
}

// seal writes the changed counters.
func (s *counters) seal(w *storage.Tx) error {
	for _, c := range s.dirty {
		c.dirty = false
		if c.now == c.sealed { // the changes were rolled back, or undid each other
			continue
		}
		s.row = c.key.appendTo(s.row[:0])
		var err error
		switch {
		case c.now == amount{}:
			err = w.DeleteValue(c.key.table, s.row)
		case c.key.table == issueAggregateTable, c.key.table == queueCountTable:
			s.value = c.now.appendTo(s.value[:0])
			err = w.SetValue(c.key.table, s.row, s.value)
		default:
			err = w.SetNumber(c.key.table, s.row, c.now.n)
		}
		if err != nil {
			return err
		}
		c.sealed = c.now
	}
	s.dirty, s.bytes = s.dirty[:0], 0
	return nil
}
