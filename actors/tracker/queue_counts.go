package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// The sessions are counted by status, by the reason of parked ones, and by agent, in rows
// of queueCountTable. The write that moves a session counts it. The sessions of a workspace
// from before these counts are counted by a timer: those that it has not come to yet are
// not counted when they move.

// The kinds of rows. Their numbers are on disk.
const (
	// queueCountProgress is a row without a text: how far the sessions are counted.
	queueCountProgress aggregateKind = 0
	queueCountStatus   aggregateKind = 2 // by status: n
	queueCountReason   aggregateKind = 3 // by the reason of parked sessions: n
	queueCountAgent    aggregateKind = 4 // by agent: n created, sum running, hi waiting
	queueCountQueued   aggregateKind = 5 // by agent: n in the claim queue
)

// countedSessions says how far the sessions of a workspace are counted. Owned by the
// workspace's goroutine.
type countedSessions struct {
	loaded bool
	// changed is set if the running command has changed the rest.
	changed bool
	// done is set if all are counted, and stored if the row says so.
	done, stored bool
	// next is the first primary key that is not counted.
	next []byte
}

func (c *countedSessions) forget() { *c = countedSessions{} }

func progressKey() storage.Key { return storage.Key(nil).Byte(byte(queueCountProgress)).Str("") }

// countedAll reads from the row of queueCountProgress whether all sessions are counted, or else
// the first primary key that is not.
func (v *View) countedAll() (done bool, next []byte, found bool, err error) {
	value, err := v.Value(queueCountTable, progressKey(), nil)
	if err != nil {
		return false, nil, false, fmt.Errorf("read how far sessions are counted: %w", err)
	}
	if len(value) == 0 {
		return false, nil, false, nil
	}
	return value[0] == 1, value[1:], true, nil
}

// sessionsCounted returns how far the sessions are counted. It begins the count of a
// workspace that has sessions and no counts.
func (tx *Tx) sessionsCounted() (*countedSessions, error) {
	c := &tx.buffer.counted
	if c.loaded {
		return c, nil
	}
	done, next, found, err := tx.countedAll()
	if err != nil {
		return nil, err
	}
	*c = countedSessions{loaded: true, changed: true, done: done, stored: found, next: next}
	if found {
		return c, nil
	}
	some, err := tx.Has(sessionTable, nil)
	if err != nil {
		return nil, fmt.Errorf("look for sessions: %w", err)
	}
	if c.done = !some; c.done {
		return c, nil // the first session stores it
	}
	if err := tx.storeCounted(c); err != nil {
		return nil, err
	}
	return c, tx.SetTimerAtOnce(timerCountSessions, "")
}

func (tx *Tx) storeCounted(c *countedSessions) error {
	value := []byte{1}
	if !c.done {
		value = append([]byte{0}, c.next...)
	}
	c.changed, c.stored = true, true
	return tx.Writer().SetValue(queueCountTable, progressKey(), value)
}

// queueCountPlace brings the counts up to date with a session's place; old or s may be nil.
func (tx *Tx) queueCountPlace(old, s *sessionRecord) error {
	c, err := tx.sessionsCounted()
	if err != nil {
		return err
	}
	if !c.done {
		id := s
		if id == nil {
			id = old
		}
		if bytes.Compare(sessionKey(id.id()), c.next) >= 0 {
			return nil
		}
	} else if !c.stored {
		if err := tx.storeCounted(c); err != nil {
			return err
		}
	}
	change := queueCounts{}
	if old != nil {
		change.countPlace(old, ^uint64(0))
	}
	if s != nil {
		change.countPlace(s, 1)
	}
	return tx.queueCountChange(change)
}

// queueCountChange adds a change to the counts.
func (tx *Tx) queueCountChange(change queueCounts) error {
	for row, a := range change {
		if err := tx.queueCountAll(row.kind, row.text, int(a.n), int(a.sum), int(a.hi)); err != nil {
			return err
		}
	}
	return nil
}

// countPlace adds a session's place by times; all bits set stand for -1.
func (t queueCounts) countPlace(s *sessionRecord, by uint64) {
	t.add(queueCountStatus, string(s.Status), amount{n: by})
	if s.Status.Ended() {
		return
	}
	if reason := s.parkedFor(); reason != 0 && int(reason) <= len(waitingReasons) {
		t.add(queueCountReason, string(waitingReasons[reason-1]), amount{n: by})
	}
	switch s.Status {
	case SessionCreated:
		t.add(queueCountAgent, s.AgentID, amount{n: by})
	case SessionRunning:
		t.add(queueCountAgent, s.AgentID, amount{sum: by})
	case SessionWaiting:
		t.add(queueCountAgent, s.AgentID, amount{hi: by})
	}
	if s.queued() {
		t.add(queueCountQueued, s.AgentID, amount{n: by})
	}
}

const (
	timerCountSessions = "count.sessions"
	// countedAtOnce is the number of sessions that one run of countSessionsOp counts.
	countedAtOnce = 2000
)

// countSessionsOp continues the count of a workspace's sessions.
var countSessionsOp = NewCommand[TimerIn, None]("CountSessions", "Count a workspace's sessions", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	c, err := tx.sessionsCounted()
	if err != nil {
		return Reply{}, err
	}
	if c.done {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	counts, n, next := queueCounts{}, 0, c.next
	if err := sessions.Scan(tx, nil, c.next, func(pk []byte, rec storage.Record) (bool, error) {
		if n++; n > countedAtOnce {
			return false, nil
		}
		row, err := sessions.Decode(rec)
		if err != nil {
			return false, err
		}
		counts.countPlace(&row.Value, 1)
		next = append(bytes.Clone(pk), 0)
		return true, nil
	}); err != nil {
		return Reply{}, fmt.Errorf("count sessions: %w", err)
	}
	if err := tx.queueCountChange(counts); err != nil {
		return Reply{}, err
	}
	c.next, c.done = next, n <= countedAtOnce
	if err := tx.storeCounted(c); err != nil {
		return Reply{}, err
	}
	if c.done {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(in.Kind, in.Subject)
})
