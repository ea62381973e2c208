package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// cut asks a state machine for its rows as they are after one entry and before the next. Replicas
// that were asked for the same entry give the same rows, while entries go on being applied.
type cut struct {
	entry uint64
	rows  chan *pebble.Snapshot // gets one value: the rows, or nil if later entries are in the state
}

// cutLook is the time between two looks whether the state has come to the entry of a cut.
const cutLook = 100 * time.Millisecond

// errCutMissed is the error of a cut to whose entry the state did not come, or which it had passed.
var errCutMissed = errors.New("cluster: the state is not at the entry")

// errCutTwice refuses a second cut of one replica at the same time.
var errCutTwice = errors.New("cluster: another comparison waits for an entry of the replica")

// rowsAt waits until the state has the entries up to one, until ctx ends at the latest. The caller
// must close the rows. It returns errCutMissed if the state has later entries, or if it does not come
// to the entry in time.
func (m *stateMachine) rowsAt(ctx context.Context, entry uint64) (*pebble.Snapshot, error) {
	c := &cut{entry: entry, rows: make(chan *pebble.Snapshot, 1)}
	if !m.cut.CompareAndSwap(nil, c) {
		return nil, errCutTwice
	}
	tick := time.NewTicker(cutLook)
	defer tick.Stop()
	for {
		if err := m.giveIfThere(c); err != nil {
			return nil, errors.Join(err, m.withdraw(c))
		}
		select {
		case rows := <-c.rows:
			if rows == nil {
				return nil, errCutMissed
			}
			return rows, nil
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(errCutMissed, m.withdraw(c))
		}
	}
}

// withdraw takes a cut back, and closes the rows that it was given meanwhile.
func (m *stateMachine) withdraw(c *cut) error {
	if m.cut.CompareAndSwap(c, nil) {
		return nil
	}
	if rows := <-c.rows; rows != nil {
		return rows.Close()
	}
	return nil
}

// giveIfThere gives a cut its rows if the state is at the entry now. Without further entries nobody
// else would.
func (m *stateMachine) giveIfThere(c *cut) error {
	if m.applied.Load() < c.entry {
		return nil
	}
	rows := m.store.State().NewSnapshot()
	at, err := readPosition(rows, m.shard)
	if err != nil || at.applied < c.entry || !m.cut.CompareAndSwap(c, nil) {
		return errors.Join(err, rows.Close())
	}
	if at.applied > c.entry {
		c.rows <- nil
		return rows.Close()
	}
	c.rows <- rows
	return nil
}

// cutBefore gives a cut its rows if it is due before an entry. All earlier entries were applied.
// Raft's state machine goroutine calls it.
func (m *stateMachine) cutBefore(c *cut) {
	switch {
	case !m.cut.CompareAndSwap(c, nil):
	case m.err != nil || m.at.applied > c.entry:
		c.rows <- nil
	default:
		c.rows <- m.store.State().NewSnapshot()
	}
}
