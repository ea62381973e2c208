package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// Timers of sessions. Each budget has its own timer, whose subject is the session. All
// leases of a workspace share one, since most of them end long before they expire.
const (
	timerSessionLeases = "session.leases"
	timerSessionBudget = "session.budget"
)

// leasesBatch is the number of leases that one run checks. Behind maxFollowed written bytes it leaves
// the rest to the next run, too.
const leasesBatch = 100

// armLeases makes sure that leases are checked by a time. The write buffer remembers the time
// of the next check, so most claims cost a comparison.
func (tx *Tx) armLeases(at time.Time) error {
	due := tx.buffer.leasesDue
	if tx.leasesDue != nil {
		due = *tx.leasesDue
	}
	if !due.IsZero() && !due.After(at) {
		return nil
	}
	row, err := timers.Get(tx, timerKey(nil, timerSessionLeases, ""))
	if err != nil {
		return fmt.Errorf("read the leases' timer: %w", err)
	}
	if row != nil && !row.Value.Due.Time().After(at) {
		at = row.Value.Due.Time()
	} else if err := tx.SetTimer(timerSessionLeases, "", at); err != nil {
		return err
	}
	tx.leasesDue = &at
	return nil
}

// leasesOp takes sessions away from claimers that did not renew their lease in time
// (Decision 37).
var leasesOp = NewCommand[TimerIn, None]("ExpireLeases", "Take sessions back from silent claimers", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if later, err := tx.putOff(in); err != nil || later {
		return Reply{Outcome: NoContent}, err
	}
	due, next, err := tx.leasesToCheck()
	if err != nil {
		return Reply{}, err
	}
	for i, pk := range due {
		if i > 0 && tx.written() > maxFollowed {
			if next, err = tx.atOnce(); err != nil {
				return Reply{}, err
			}
			break
		}
		if err := tx.checkLease(pk, &next); err != nil {
			return Reply{}, err
		}
	}
	tx.leasesDue = &next
	if next.IsZero() {
		return Reply{Outcome: NoContent}, tx.ClearTimer(timerSessionLeases, "")
	}
	return Reply{Outcome: NoContent}, tx.SetTimer(timerSessionLeases, "", next)
})

// leasesToCheck returns the sessions whose leases must be checked now, and the time of
// the next check, or zero.
func (tx *Tx) leasesToCheck() (due [][]byte, next time.Time, err error) {
	err = tx.Rows(sessionLeases, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 8+storage.ListedKeyLen {
			return false, fmt.Errorf("%w: lease entry of %d bytes", storage.ErrFormat, len(fields))
		}
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC()
		switch {
		case at.After(tx.now):
			next = at
			return false, nil
		case len(due) == leasesBatch:
			next, err = tx.atOnce()
			return false, err
		}
		due = append(due, append([]byte(nil), fields[8:]...))
		return true, nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list the leases: %w", err)
	}
	return due, next, nil
}

// checkLease ends a lease that has expired, or sets the next check of one that was
// renewed.
func (tx *Tx) checkLease(pk []byte, next *time.Time) error {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("a lease is of a session that is not there")
	}
	if err != nil {
		return err
	}
	lease := row.Value.Inner.Lease
	if ends := lease.ExpiresAt.Time(); ends.After(tx.now) {
		s := row.Value
		later := *lease
		later.CheckAt = later.ExpiresAt
		s.Inner.Lease = &later
		if next.IsZero() || ends.Before(*next) {
			*next = ends
		}
		_, err := sessions.Update(tx, row, &s)
		return err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return err
	}
	if err := c.lapse(); err != nil {
		return err
	}
	_, err = c.save()
	return err
}

// timedSession returns the session of a timer, or nil.
func (tx *Tx) timedSession(in *TimerIn) (*storage.Row[sessionRecord], error) {
	id, ok := storage.ParseID(in.Subject)
	if !ok {
		return nil, nil
	}
	row, err := sessions.Get(tx, sessionKey(id))
	if err != nil {
		return nil, fmt.Errorf("read a session: %w", err)
	}
	return row, nil
}
