package tracker

import (
	"fmt"
	"maps"

	"switchyard/storage"
)

// Backlog is the work that the workspaces of a node have, for its metrics (Decision 64).
type Backlog struct {
	Sessions map[SessionStatus]uint64
	// OldestCreated is the time of the oldest session that is created; empty for none.
	OldestCreated Timestamp
	Deliveries    uint64 // webhook deliveries that have not ended
}

// NewBacklog returns a backlog of nothing.
func NewBacklog() *Backlog {
	b := &Backlog{Sessions: map[SessionStatus]uint64{}}
	for _, status := range sessionStatuses {
		b.Sessions[status] = 0
	}
	return b
}

// Clone returns a copy.
func (b *Backlog) Clone() Backlog {
	c := *b
	c.Sessions = maps.Clone(b.Sessions)
	return c
}

// AddSessions adds the sessions of a workspace, from the counts that are kept.
func (b *Backlog) AddSessions(state *storage.View) error {
	v := View{View: *state}
	created := uint64(0)
	if err := v.eachQueueCount(queueCountStatus, func(text string, a amount) (bool, error) {
		b.Sessions[SessionStatus(text)] += a.n
		if text == string(SessionCreated) {
			created = a.n
		}
		return true, nil
	}); err != nil || created == 0 {
		return err
	}
	oldest, err := v.oldestUnder(sessionByStatus, storage.Key(nil).Byte(SessionCreated.rank()))
	if err == nil && oldest != nil && (b.OldestCreated == "" || *oldest < b.OldestCreated) {
		b.OldestCreated = *oldest
	}
	return err
}

// AddDeliveries adds the deliveries of the webhooks of a shard, in the order of their keys from
// one on, as long as there is room for another webhook. It returns the key at which to go on, or
// nil at the end. system reads the shard's own rows, and of those of a workspace.
func (b *Backlog) AddDeliveries(system *storage.View, of func(storage.ID) storage.View, from []byte, room *int) (next []byte, err error) {
	err = system.Rows(webhookByShard, nil, from, func(fields, _ []byte) (bool, error) {
		if *room <= 0 {
			next = append(next, fields...)
			return false, nil
		}
		*room--
		if len(fields) != 32 {
			return false, fmt.Errorf("%w: webhook entry of %d bytes", storage.ErrFormat, len(fields))
		}
		webhook, err := newestLast(fields, nil)
		if err != nil {
			return false, err
		}
		v := of(storage.ID(fields[:16]))
		n, err := v.Number(pendingCount, webhook[:])
		b.Deliveries += n
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("count the pending deliveries of a shard: %w", err)
	}
	return next, nil
}

// SessionWork is what the commands of a batch did with sessions, for metrics.
type SessionWork struct {
	// ClaimWaits has the seconds that each claimed session could have been claimed before.
	ClaimWaits          []float64
	Lapses, DeadLetters int
}

// undo takes back everything after an earlier state of w.
func (w *SessionWork) undo(to SessionWork) {
	w.ClaimWaits = w.ClaimWaits[:len(to.ClaimWaits)]
	w.Lapses, w.DeadLetters = to.Lapses, to.DeadLetters
}

// Work returns what the open batch does with sessions. It is valid until the next command.
func (l *WriteBuffer) Work() *SessionWork { return &l.work }

// noteClaim notes the wait of a session that is claimed now: since it was made or put back into
// the queue, or since notBefore.
func (c *sessionChange) noteClaim() {
	s, now := &c.row.Value, c.tx.now
	since := s.CreatedAt.Time()
	for _, later := range []*Timestamp{s.LastProgressAt, s.NotBefore} {
		if later != nil && later.Time().After(since) {
			since = later.Time()
		}
	}
	work := &c.tx.buffer.work
	work.ClaimWaits = append(work.ClaimWaits, max(0, now.Sub(since)).Seconds())
}
