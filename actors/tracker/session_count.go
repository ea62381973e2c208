package tracker

import (
	"encoding/binary"
	"fmt"

	"switchyard/storage"
)

// The counts of the queue are kept with each write, in rows like those of issue counts. A
// row has three numbers, whose meaning depends on its kind.

// queueCountKey counts a concurrency key's sessions: n hold it, sum are parked under it.
const queueCountKey aggregateKind = 1

func (k *counterKey) appendQueueCount(b storage.Key) storage.Key {
	return b.Byte(byte(k.kind)).Str(k.text)
}

// tallied returns a row of the queue's counts.
func (tx *Tx) tallied(kind aggregateKind, text string) (amount, error) {
	c, err := tx.buffer.counters.load(tx, counterKey{table: queueCountTable, kind: kind, text: text})
	if err != nil {
		return amount{}, err
	}
	return c.now, nil
}

// countKey adds to the numbers of sessions that hold a concurrency key, and that are parked
// under it.
func (tx *Tx) countKey(key string, held, parked int) error {
	return tx.queueCountAll(queueCountKey, key, held, parked, 0)
}

// queueCountAll adds to the numbers of a row. None may become negative.
func (tx *Tx) queueCountAll(kind aggregateKind, text string, n, sum, hi int) error {
	if n == 0 && sum == 0 && hi == 0 {
		return nil
	}
	c, err := tx.buffer.counters.change(tx, counterKey{table: queueCountTable, kind: kind, text: text})
	if err != nil {
		return err
	}
	c.n, c.sum, c.hi = c.n+uint64(n), c.sum+uint64(sum), c.hi+uint64(hi)
	return nil
}

// queueCounts is the part of the queue's counts that a session adds.
type queueCounts map[queueCountRow]amount

type queueCountRow struct {
	kind aggregateKind
	text string
}

func (t queueCounts) add(kind aggregateKind, text string, a amount) {
	row := t[queueCountRow{kind, text}]
	row.n, row.sum, row.hi = row.n+a.n, row.sum+a.sum, row.hi+a.hi
	t[queueCountRow{kind, text}] = row
}

// count adds a session.
func (t queueCounts) count(s *sessionRecord) {
	t.countPlace(s, 1)
	for _, key := range s.ConcurrencyKeys {
		if s.engaged() {
			t.add(queueCountKey, key, amount{n: 1})
		}
	}
	if p := s.Inner.Park; p != nil && p.Reason == parkConcurrency {
		t.add(queueCountKey, p.Subject, amount{sum: 1})
	}
}

// checkQueueCounts checks the kept counts against the sessions.
func checkQueueCounts(v *storage.View, want queueCounts, report reporter) error {
	view := View{View: *v}
	done, _, found, err := view.countedAll()
	if err != nil {
		return err
	}
	if !done { // they are being counted
		for row := range want {
			if row.kind != queueCountKey && (found || row.kind >= queueCountStatus) {
				delete(want, row)
			}
		}
	}
	seen := queueCounts{}
	if err := v.Rows(queueCountTable, nil, nil, func(fields, value []byte) (bool, error) {
		if len(fields) > 0 && (fields[0] == byte(queueCountProgress) || !done && fields[0] != byte(queueCountKey)) {
			return true, nil
		}
		a, err := parseAmount(value)
		if err != nil || len(fields) < 2 {
			report("count of the queue", fields, "is not a count")
			return true, nil
		}
		row := queueCountRow{aggregateKind(fields[0]), unStr(fields[1:])}
		seen[row] = a
		if want[row] != a {
			report("count of the queue", fields, "says %v, there are %v", a, want[row])
		}
		return true, nil
	}); err != nil {
		return fmt.Errorf("read the counts of the queue: %w", err)
	}
	for row, a := range want {
		if a != (amount{}) && seen[row] == (amount{}) {
			report("count of the queue", binary.BigEndian.AppendUint16(nil, uint16(row.kind)), "there are %v for %q, not counted", a, row.text)
		}
	}
	return nil
}
