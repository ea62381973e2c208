package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// offerPlaces puts sessions that are parked under a key into the claim queue: for each
// agent and provider as many as places have become free, the most urgent and then the
// oldest first.
func (tx *Tx) offerPlaces(place *freedPlace, n int) error {
	free, err := tx.freePlaces(place.key)
	if err != nil || free == 0 {
		return err
	}
	n = int(min(uint64(n), free))
	under := storage.Key(nil).Byte(byte(parkConcurrency)).Str(place.key)
	if !place.all {
		more, err := tx.offerTo(under.Str(place.agent).Str(place.provider), n)
		if err != nil || !more {
			return err
		}
		return tx.SetTimerAtOnce(timerConcurrency, place.key)
	}
	var from []byte
	for range maxReleased {
		var class []byte
		if err := tx.Rows(sessionParked, under, from, func(fields, _ []byte) (bool, error) {
			parts := strs(fields[len(under):], 2)
			class = slices.Concat(parts[0], parts[1])
			return false, nil
		}); err != nil {
			return fmt.Errorf("list the sessions parked under a key: %w", err)
		}
		if class == nil {
			return nil
		}
		more, err := tx.offerTo(slices.Concat(under, class), n)
		if err != nil {
			return err
		}
		if more {
			break
		}
		class[len(class)-1] = 1 // behind all entries of the class
		from = class
	}
	return tx.SetTimerAtOnce(timerConcurrency, place.key)
}

// offerTo puts sessions of an agent and provider that are parked under a key into the claim
// queue, until n of them are there that the agent can begin to work on. Those that can't be
// claimed for another reason are parked for it, and the next ones take their turn. more is set
// if the command has done enough.
func (tx *Tx) offerTo(under storage.Key, n int) (more bool, err error) {
	for looked := 0; n > 0; {
		keys, _, err := tx.parkedUnder(under, min(n, maxReleased))
		if err != nil || len(keys) == 0 {
			return false, err
		}
		queued := 0
		for _, pk := range keys {
			if tx.written() > maxFollowed {
				return true, nil
			}
			s, err := tx.reparkKey(pk)
			if err != nil {
				return false, err
			}
			if !s.queued() {
				continue
			}
			queued++
			// The claims pass over the session of an issue that its agent works on.
			busy, err := tx.Has(sessionEngaged, storage.Key(nil).Str(s.AgentID).ID(s.issue()))
			if err != nil {
				return false, fmt.Errorf("look for an agent's session: %w", err)
			}
			if !busy {
				n--
			}
		}
		if looked += len(keys); looked > maxReleased {
			return n > 0, nil
		}
		// A session that is parked under the same key again is not gone from the front:
		// the key has become full.
		if queued == 0 {
			if again, _, err := tx.parkedUnder(under, 1); err != nil || len(again) == 0 || string(again[0]) == string(keys[0]) {
				return false, err
			}
		}
	}
	return false, nil
}

// offerBeside offers the places that sessions in the claim queue can't take from now on: s has
// begun to run, and they are sessions of the same agent and issue.
func (tx *Tx) offerBeside(s *sessionRecord) error {
	if parked, err := tx.someParked(parkConcurrency); err != nil || !parked {
		return err
	}
	prefix := storage.Key(nil).ID(s.issue()).Str(s.AgentID)
	var keys [][]byte
	if err := tx.Rows(sessionActive, prefix, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), fields[len(fields)-storage.ListedKeyLen:]...))
		return len(keys) < maxActiveSessions, nil
	}); err != nil {
		return fmt.Errorf("list an agent's sessions of an issue: %w", err)
	}
	for _, pk := range keys {
		row, err := sessions.Get(tx, pk)
		if err != nil {
			return err
		}
		if row == nil || !row.Value.queued() {
			continue
		}
		for _, key := range row.Value.ConcurrencyKeys {
			tx.keys.freed = append(tx.keys.freed, freedPlace{key: key, agent: row.Value.AgentID, provider: row.Value.Provider})
		}
	}
	return nil
}

// offerPast offers the places of sessions in the claim queue that the claimer may not see to the
// next ones of their agents and providers: it may be that nobody else claims for these. It does so
// once for each session, and reports whether others were moved.
func (q *claim) offerPast() (offered bool, err error) {
	tx := q.tx
	if len(q.unseen) == 0 || len(q.unseen) == maxUnseen {
		return false, nil
	}
	if parked, err := tx.someParked(parkConcurrency); err != nil || !parked {
		return false, err
	}
	if q.passed == nil {
		q.passed = map[string]bool{}
	}
	before := tx.written()
	for _, pk := range q.unseen {
		if q.passed[string(pk)] {
			continue
		}
		q.passed[string(pk)] = true
		row, err := sessions.Get(tx, pk)
		if err != nil || row == nil {
			return false, err
		}
		for _, key := range row.Value.ConcurrencyKeys {
			tx.keys.freed = append(tx.keys.freed, freedPlace{key: key, agent: row.Value.AgentID, provider: row.Value.Provider})
		}
	}
	if err := tx.settleKeys(); err != nil {
		return false, err
	}
	return tx.written() > before, nil
}

// someParked reports whether sessions may be parked for a reason.
func (tx *Tx) someParked(reason parkReason) (bool, error) {
	counted, err := tx.sessionsCounted()
	if err != nil || !counted.done {
		return true, err
	}
	n, err := tx.tallied(queueCountReason, string(waitingReasons[reason-1]))
	return n.n > 0, err
}
