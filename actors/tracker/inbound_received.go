package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// receivedLife is how long a call is remembered: longer than providers retry.
const receivedLife = 7 * 24 * time.Hour

// receivedKey is the key of an accepted call: SHA-256 over its source and id.
type receivedKey [sha256.Size]byte

func newReceivedKey(c inboundCall) receivedKey {
	return sha256.Sum256(storage.Key(nil).Str(c.Source).Str(c.Delivery))
}

var _ = declareBound(receivedTable, 200_000, "remembered deliveries")

// recordCall records a call, in the batch of its effect; it returns false if the call was
// recorded before. The number of recorded calls is limited: beyond it the oldest is
// removed early.
func (tx *Tx) recordCall(c inboundCall) (first bool, err error) {
	key := newReceivedKey(c)
	known, err := tx.Has(receivedTable, key[:])
	if err != nil || known {
		return false, err
	}
	n, err := tx.Counter(recordCountTable, storage.ID{15: byte(receivedTable)})
	if err != nil {
		return false, err
	}
	if n >= quotas[receivedTable].most {
		if err := tx.dropReceived(1, nil); err != nil {
			return false, err
		}
	}
	if err := tx.countRecord(receivedTable, 1); err != nil {
		return false, err
	}
	w := tx.Writer()
	if err := w.SetValue(receivedTable, key[:], storage.Key(nil).U64(uint64(tx.now.UnixMilli()))); err != nil {
		return false, err
	}
	if err := w.SetValue(receivedByAge, receivedAge(tx.now, key), nil); err != nil {
		return false, err
	}
	return true, tx.setSweep(sweepReceived, tx.now.Add(receivedLife))
}

func receivedAge(at time.Time, key receivedKey) storage.Key {
	return append(storage.Key(nil).U64(uint64(at.UnixMilli())), key[:]...)
}

// dropReceived removes the oldest calls, at most limit of them, until expired returns
// false (nil: none does).
func (tx *Tx) dropReceived(limit int, expired func(at time.Time) bool) error {
	var gone [][]byte
	err := tx.Rows(receivedByAge, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 8+len(receivedKey{}) {
			return false, fmt.Errorf("%w: age entry of %d bytes", storage.ErrFormat, len(fields))
		}
		if expired != nil && !expired(time.UnixMilli(int64(binary.BigEndian.Uint64(fields)))) {
			return false, nil
		}
		gone = append(gone, bytes.Clone(fields))
		return len(gone) < limit, nil
	})
	if err != nil {
		return fmt.Errorf("read remembered calls: %w", err)
	}
	for _, fields := range gone {
		if err := tx.Writer().DeleteValue(receivedTable, fields[8:]); err != nil {
			return err
		}
		if err := tx.Writer().DeleteValue(receivedByAge, fields); err != nil {
			return err
		}
	}
	return tx.countRecord(receivedTable, -len(gone))
}

var sweepReceivedOp = NewCommand[TimerIn, None]("SweepReceived", "Forget calls past their time", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	dropped := 0
	var next time.Time
	err := tx.dropReceived(sweepBatch, func(at time.Time) bool {
		if dies := at.Add(receivedLife); dies.After(tx.now) {
			next = dies
			return false
		}
		dropped++
		return true
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.endSweep(sweepReceived, dropped == sweepBatch, next)
}, WithSpaceEffect(FreesSpace))

// receivedRows are the plain rows of recorded calls.
var receivedRows = []storage.RowSpec{
	{ID: receivedTable, Name: "remembered call", Check: checkReceived},
	{ID: receivedByAge, Name: "remembered call by age", Check: checkReceivedAge},
}

func checkReceived(v *storage.View, fields, value []byte) error {
	if len(fields) != len(receivedKey{}) || len(value) != 8 {
		return fmt.Errorf("%w: remembered call of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
	}
	there, err := v.Has(receivedByAge, append(bytes.Clone(value), fields...))
	if err == nil && !there {
		err = fmt.Errorf("would never be swept: it has no entry by its age")
	}
	return err
}

func checkReceivedAge(v *storage.View, fields, _ []byte) error {
	if len(fields) != 8+len(receivedKey{}) {
		return fmt.Errorf("%w: age entry of %d bytes", storage.ErrFormat, len(fields))
	}
	value, err := v.Value(receivedTable, fields[8:], nil)
	if err == nil && !bytes.Equal(value, fields[:8]) {
		err = fmt.Errorf("there is no such call of that moment")
	}
	return err
}
