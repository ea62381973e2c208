package tracker

import (
	"fmt"

	"switchyard/storage"
)

// The claim queue consists of two indexes of claimable sessions: of all, and by agent.
// Both are in the order of claims: by the issue's priority, then oldest first. The
// priority is copied to the sessions' records, so that the indexes can be derived from
// them.

// timerSessionPlaces goes on with the sessions of a changed issue, its subject.
const timerSessionPlaces = "session.place"

// placeSessions gives the unfinished sessions of an issue, of which there are at most
// maxActiveSessions, their places anew, after a change of the issue's priority or of what keeps its
// sessions waiting. Beyond maxFollowed written bytes it leaves the rest to a timer: sessions are as
// large as their results and the schemas of these.
func (tx *Tx) placeSessions(issue storage.ID, priority IssuePriority) error {
	active, err := tx.activeSessions(issue)
	if err != nil {
		return err
	}
	for _, pk := range active {
		if tx.written() > maxFollowed {
			return tx.SetTimerAtOnce(timerSessionPlaces, issue.String())
		}
		row, err := sessions.Get(tx, pk)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		s := row.Value
		s.Inner.Rank = priority.rank()
		if err := tx.setParking(&s); err != nil {
			return err
		}
		if s.Inner.Rank == row.Value.Inner.Rank && samePlace(row.Value.Inner.Park, s.Inner.Park) {
			continue
		}
		if _, err := sessions.Update(tx, row, &s); err != nil {
			return fmt.Errorf("move a session in the queue: %w", err)
		}
		if err := tx.sessionMoved(&row.Value, &s); err != nil {
			return err
		}
		if s.queued() {
			tx.buffer.queue.lower(&s)
		}
	}
	return nil
}

// placeSessionsOp goes on with the sessions of a changed issue. Claims may have passed over those
// that were not parked yet, and that are not to be parked any more.
var placeSessionsOp = NewCommand[TimerIn, None]("PlaceSessions", "Move further sessions of a changed issue in the queue", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	issue, ok := storage.ParseID(in.Subject)
	if !ok {
		return Reply{Outcome: NoContent}, nil
	}
	row, err := issues.Get(tx, issueKey(issue))
	if err != nil || row == nil {
		return Reply{Outcome: NoContent}, err
	}
	if err := tx.placeSessions(issue, row.Value.Priority); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.wakeForIssue(issue)
}, Prompt)

// maxActiveSessions is the number of unfinished sessions that an issue may have.
const maxActiveSessions = 1000

// activeSessions returns the primary keys of an issue's unfinished sessions, at most
// one more than maxActiveSessions.
func (v *View) activeSessions(issue storage.ID) (keys [][]byte, err error) {
	err = v.Rows(sessionActive, issue[:], nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), fields[len(fields)-storage.ListedKeyLen:]...))
		return len(keys) <= maxActiveSessions, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list an issue's sessions: %w", err)
	}
	return keys, nil
}

// queuedEntry is an entry of the claim queue, with encoded strings.
type queuedEntry struct {
	session, issue  storage.ID
	agent, provider []byte
}

// parseQueued parses an entry of the claim queue after the urgency; withAgent is set
// for the index of all sessions. The result aliases fields.
func parseQueued(fields []byte, withAgent bool) (e queuedEntry, err error) {
	const fixed = 16 + 16
	if len(fields) < fixed+storage.ListedKeyLen {
		return e, fmt.Errorf("%w: queue entry of %d bytes", storage.ErrFormat, len(fields))
	}
	copy(e.session[:], fields)
	copy(e.issue[:], fields[16:])
	rest := fields[fixed : len(fields)-storage.ListedKeyLen]
	if withAgent {
		for i, c := range rest {
			if c == 0 {
				e.agent, rest = rest[:i+1], rest[i+1:]
				break
			}
		}
	}
	e.provider = rest
	return e, nil
}

// unStr decodes what Key.Str wrote.
func unStr(b []byte) string {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b)-1; i++ {
		if b[i] == 1 && i+1 < len(b)-1 {
			i++
			out = append(out, b[i]-1)
			continue
		}
		out = append(out, b[i])
	}
	return string(out)
}
