package tracker

import (
	"encoding/binary"
	"fmt"

	"switchyard/storage"
)

// The counts of the queue are kept with each write, in rows like those of issue counts. A
// row has three numbers, whose meaning depends on its kind.

// tallyKey counts a concurrency key's sessions: n hold it, sum are parked under it.
const tallyKey aggregateKind = 1

func (k *counterKey) appendQueueTally(b storage.Key) storage.Key {
	return b.Byte(byte(k.kind)).Str(k.text)
}

// tallied returns a row of the queue's counts.
func (tx *Tx) tallied(kind aggregateKind, text string) (amount, error) {
	c, err := tx.buffer.counters.load(tx, counterKey{table: queueTallyTable, kind: kind, text: text})
	if err != nil {
		return amount{}, err
	}
	return c.now, nil
}

// tally adds to the first two numbers of a row.
func (tx *Tx) tally(kind aggregateKind, text string, n, sum int) error {
	return tx.tallyAll(kind, text, n, sum, 0)
}

// tallyAll adds to the numbers of a row. None may become negative.
func (tx *Tx) tallyAll(kind aggregateKind, text string, n, sum, hi int) error {
	if n == 0 && sum == 0 && hi == 0 {
		return nil
	}
	c, err := tx.buffer.counters.change(tx, counterKey{table: queueTallyTable, kind: kind, text: text})
	if err != nil {
		return err
	}
	c.n, c.sum, c.hi = c.n+uint64(n), c.sum+uint64(sum), c.hi+uint64(hi)
	return nil
}

// queueTally is the part of the queue's counts that a session adds.
type queueTally map[tallyRow]amount

type tallyRow struct {
	kind aggregateKind
	text string
}

func (t queueTally) add(kind aggregateKind, text string, a amount) {
	row := t[tallyRow{kind, text}]
	row.n, row.sum, row.hi = row.n+a.n, row.sum+a.sum, row.hi+a.hi
	t[tallyRow{kind, text}] = row
}

// count adds a session.
func (t queueTally) count(s *sessionRecord) {
	t.countPlace(s, 1)
	for _, key := range s.ConcurrencyKeys {
		if s.engaged() {
			t.add(tallyKey, key, amount{n: 1})
		}
	}
	if p := s.Inner.Park; p != nil && p.Reason == parkConcurrency {
		t.add(tallyKey, p.Subject, amount{sum: 1})
	}
}

// checkQueueTally checks the kept counts against the sessions.
func checkQueueTally(v *storage.View, want queueTally, report reporter) error {
	view := View{View: *v}
	done, _, found, err := view.countedAll()
	if err != nil {
		return err
	}
	if !done { // they are being counted
		for row := range want {
			if row.kind != tallyKey && (found || row.kind >= tallyStatus) {
				delete(want, row)
			}
		}
	}
	seen := queueTally{}
	if err := v.Rows(queueTallyTable, nil, nil, func(fields, value []byte) (bool, error) {
		if len(fields) > 0 && (fields[0] == byte(tallyProgress) || !done && fields[0] != byte(tallyKey)) {
			return true, nil
		}
		a, err := parseAmount(value)
		if err != nil || len(fields) < 2 {
			report("count of the queue", fields, "is not a count")
			return true, nil
		}
		row := tallyRow{aggregateKind(fields[0]), unStr(fields[1:])}
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
