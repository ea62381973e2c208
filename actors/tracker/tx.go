package tracker

import (
	"encoding/binary"
	"io"
	"time"

	"switchyard/storage"
)

// Tx is the context of a command: a View that reads its own writes, and the means to
// write, count, make identifiers and emit events.
type Tx struct {
	View
	buffer *WriteBuffer
	armed  sweeps      // sweeping timers set by this command
	began  int         // size of the batch when this command began
	auto   *automation // nil until the command has changed an issue that automation looks at
	// dispatched is the JSON of the session that this command created by naming an
	// assignee; nil for none.
	dispatched []byte
	// dispatches says of an agent whether this command dispatches the issue that it writes to
	// the agent anyhow; nil if it dispatches it to nobody.
	dispatches func(agent string) bool
	// escalates is set while the command escalates an issue. A dispatch that this causes must not
	// fail the command.
	escalates bool
	// leasesDue is the time of the next check of leases if this command has changed it;
	// nil: the write buffer's value.
	leasesDue *time.Time
	// dueAtOnce is the time of the timers that this command sets to be due at once; zero: none yet.
	dueAtOnce time.Time
	// happened is what the command has done that sessions may wait for.
	happened  []happening
	followers followerWork
	blocks    *blockWork // nil until the command has changed which issues are blocked
	keys      keyWork
	// overspent are the scopes whose budget the command has used up, until that is applied.
	overspent []budgetScope
	// audits are the kinds of acts that the command records, and acts those of them so far.
	audits []string
	acts   []auditNote
	// limited is set if the limits of the workspace apply to the command. A command that only
	// takes access away clears it: that must work where there is no room.
	limited bool
	// founder is the user that a request without a credential makes.
	founder UserID
	// wall is the time by the owner's clock. Rates and waits go by it.
	wall time.Time
	// order is now or, if that is later, the time of the newest id, as far ahead as it may be. What
	// is sorted by a time, or compared with the time in an id, has this one (Decision 95).
	order time.Time
}

// Writer is the open batch, for the tables.
func (tx *Tx) Writer() *storage.Tx { return tx.buffer.store }

// written returns the number of bytes that this command has written.
func (tx *Tx) written() int { return tx.buffer.store.Size() - tx.began }

// NewID returns a UUIDv7 (RFC 9562, section 6.2, method 1: a 12-bit counter behind the
// milliseconds). Within a workspace each id is greater than all earlier ones, even when
// the clock goes back, so the order of ids is the order of creation.
func (tx *Tx) NewID() (storage.ID, error) {
	tick, err := tx.tick()
	if err != nil {
		return storage.ID{}, err
	}
	var id storage.ID
	binary.BigEndian.PutUint64(id[:], tick>>12<<16|0x7000|tick&0xfff)
	if _, err := io.ReadFull(tx.buffer.random, id[8:]); err != nil {
		return storage.ID{}, err
	}
	id[8] = id[8]&0x3f | 0x80
	return id, nil
}

// tick returns a number that is greater than all earlier ones of the workspace: the milliseconds since
// 1970 and, in the lowest 12 bits, a counter.
func (tx *Tx) tick() (uint64, error) {
	clock, err := tx.buffer.counters.change(tx, counterKey{table: clockTable})
	if err != nil {
		return 0, err
	}
	clock.n = max(uint64(tx.now.UnixMilli())<<12, clock.n+1)
	return clock.n, nil
}

// endMillisecond has all ids that later commands make be of a later millisecond than tx.order, whatever the
// owner's clock says.
func (tx *Tx) endMillisecond() error {
	clock, err := tx.buffer.counters.change(tx, counterKey{table: clockTable})
	if err != nil {
		return err
	}
	clock.n = max(clock.n, uint64(tx.order.UnixMilli()+1)<<12)
	return nil
}

// Secret fills b with random bytes that are fit for credentials.
func (tx *Tx) Secret(b []byte) error {
	_, err := io.ReadFull(tx.buffer.random, b)
	return err
}

// Next adds one to the counter of a table and subject and returns it; the first value
// is 1.
func (tx *Tx) Next(table storage.TableID, subject storage.ID) (uint64, error) {
	c, err := tx.buffer.counters.change(tx, counterKey{table: table, subject: subject})
	if err != nil {
		return 0, err
	}
	c.n++
	return c.n, nil
}

// Counter returns the value of a counter, which starts at 0.
func (tx *Tx) Counter(table storage.TableID, subject storage.ID) (uint64, error) {
	return tx.buffer.counters.number(tx, counterKey{table: table, subject: subject})
}

// SetCounter sets a counter to n.
func (tx *Tx) SetCounter(table storage.TableID, subject storage.ID, n uint64) error {
	c, err := tx.buffer.counters.change(tx, counterKey{table: table, subject: subject})
	if err != nil {
		return err
	}
	c.n = n
	return nil
}

// followsIDs is how far a command's time is ahead of its owner's clock at most, so that it does not
// go back. The clocks of two owners may differ by as much (package cluster).
const followsIDs = 10 * time.Second

// setClock sets the command's times from the owner's clock.
func (tx *Tx) setClock(wall time.Time) error {
	tx.wall = wall.UTC().Truncate(time.Millisecond)
	last, err := tx.buffer.counters.number(tx, counterKey{table: clockTable})
	if err != nil {
		return err
	}
	tx.now, tx.order = tx.wall, tx.wall
	if newest := time.UnixMilli(int64(last >> 12)).UTC(); newest.After(tx.wall) {
		tx.order = newest
		// An id that is further ahead was made while a clock was wrong. Leases and other deadlines
		// of an hour must not take another hour for that.
		if newest.Sub(tx.wall) <= followsIDs {
			tx.now = newest
		}
	}
	return nil
}
