package tracker

import (
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// A session may wait for the end of another (Decision 33). The predecessor must exist
// first, so there are no cycles. The end of a session moves its followers into the
// queue, or cancels them, which in turn ends the wait of their own followers. The
// command that ends a session moves as many as fit into its batch; a timer moves the
// rest.

// timerSessionFollowers moves the remaining followers of an ended session, its subject.
const timerSessionFollowers = "session.line"

const (
	// maxFollowers is the number of followers that one command moves. Beyond
	// maxFollowed written bytes it leaves the rest to the timer.
	maxFollowers = 200
	maxFollowed  = 4 << 20
)

// followerWork is the state of a command that moves followers.
type followerWork struct {
	ended []*sessionRecord // sessions whose followers have not been moved
	busy  bool
	moved int
}

// predecessorOf returns the session that an id of queuedAfter names: the session
// itself, or an issue's newest. fault is a message for the caller if there is none.
func (tx *Tx) predecessorOf(id string) (s *sessionRecord, fault string, err error) {
	row, err := tx.session(SessionID(id))
	if err != nil {
		return nil, "", err
	}
	if row != nil {
		return &row.Value, "", nil
	}
	issue, err := tx.issue(id)
	if err != nil {
		return nil, "", err
	}
	if issue == nil {
		return nil, "There is no such issue or session.", nil
	}
	key := issue.Value.id()
	var newest []byte
	if err := tx.Rows(sessionByIssue, key[:], nil, func(fields, _ []byte) (bool, error) {
		newest = append(newest, fields[len(key):]...)
		return false, nil
	}); err != nil {
		return nil, "", fmt.Errorf("look for an issue's newest session: %w", err)
	}
	if newest == nil {
		return nil, "The issue has no session yet. Dispatch it earlier in the batch, or before.", nil
	}
	if row, err = sessions.Get(tx, newest); err == nil && row == nil {
		err = fmt.Errorf("issue %s: the index names a session that is not there", id)
	}
	if err != nil {
		return nil, "", err
	}
	return &row.Value, "", nil
}

// maxQueuedAfter is the number of sessions that one may be queued after.
const maxQueuedAfter = 50

// queuedAfterIDs returns the ids of a queuedAfter: one, or a list. It adds the faults of
// their form; at is the path of the options in the body.
func queuedAfterIDs(raw json.RawMessage, at string, faults *Faults) (ids []string) {
	if len(raw) == 0 {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil && raw[0] == '"' {
		ids = []string{one}
	} else if raw[0] != '[' || json.Unmarshal(raw, &ids) != nil || len(ids) == 0 || len(ids) > maxQueuedAfter {
		faults.Add(at+"queuedAfter", fmt.Sprintf("Must be the id of an issue or a session, or a list of 1 to %d ids.", maxQueuedAfter))
		return nil
	}
	for i, id := range ids {
		if id == "" || len([]rune(id)) > 255 {
			faults.Add(at+queuedAfterPath(raw, i), "Must be an id of 1 to 255 characters.")
		}
	}
	return ids
}

// queuedAfterPath returns the path of an id of a queuedAfter.
func queuedAfterPath(raw json.RawMessage, i int) string {
	if raw[0] == '[' {
		return fmt.Sprintf("queuedAfter[%d]", i)
	}
	return "queuedAfter"
}

// predecessors are the sessions that a new one is queued after.
type predecessors struct {
	all, pending []SessionID
	// failed is one that has ended, and not as completed; nil if there is none.
	failed *sessionRecord
}

// predecessors returns the sessions that the ids of a queuedAfter stand for. It adds a
// fault for each id without one; at is the path of the options in the body.
func (tx *Tx) predecessors(raw json.RawMessage, at string, faults *Faults) (p predecessors, err error) {
	for i, id := range queuedAfterIDs(raw, at, new(Faults)) { // Validate has told of their form
		s, missing, err := tx.predecessorOf(id)
		if err != nil {
			return p, err
		}
		if s == nil {
			faults.Add(at+queuedAfterPath(raw, i), missing)
			continue
		}
		if slices.Contains(p.all, s.ID) {
			continue
		}
		p.all = append(p.all, s.ID)
		switch {
		case s.Status == SessionCompleted:
			continue
		case s.Status.Ended():
			p.failed = s
		}
		p.pending = append(p.pending, s.ID)
	}
	return p, nil
}

// cancelFollower cancels a new session that is queued after one that did not complete.
func (tx *Tx) cancelFollower(id storage.ID, failed *sessionRecord) (*sessionRecord, []byte, error) {
	row, err := sessions.Get(tx, sessionKey(id))
	if err == nil && row == nil {
		err = fmt.Errorf("session %s is not there", id)
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return nil, nil, err
	}
	if err := c.cancel(fmt.Sprintf("the session it was queued after is %s", failed.Status), byService); err != nil {
		return nil, nil, err
	}
	body, err := c.save()
	return &c.s, body, err
}

// sessionHasEnded moves the followers of a session. Canceling a follower calls it
// again; the outermost call works through the list, so that a long chain is not a deep
// recursion.
func (tx *Tx) sessionHasEnded(s *sessionRecord) error {
	line := &tx.followers
	line.ended = append(line.ended, s)
	if line.busy {
		return nil
	}
	line.busy = true
	defer func() { line.busy = false }()
	for len(line.ended) > 0 {
		first := line.ended[0]
		line.ended = line.ended[1:]
		more, err := tx.moveFollowers(first)
		if err == nil && more {
			err = tx.SetTimerAtOnce(timerSessionFollowers, string(first.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveFollowers moves sessions that waited for an ended one, and reports whether some
// are left.
func (tx *Tx) moveFollowers(s *sessionRecord) (more bool, err error) {
	id := s.id()
	var keys [][]byte
	if err := tx.Rows(sessionByPredecessor, id[:], nil, func(fields, _ []byte) (bool, error) {
		if more = len(keys)+tx.followers.moved >= maxFollowers; more {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), fields[len(id):]...))
		return true, nil
	}); err != nil {
		return false, fmt.Errorf("list the sessions queued behind one: %w", err)
	}
	for _, pk := range keys {
		if tx.written() > maxFollowed {
			return true, nil
		}
		row, err := sessions.Get(tx, pk)
		if err == nil && row == nil {
			err = fmt.Errorf("session %s: the index names a follower that is not there", s.ID)
		}
		if err != nil {
			return false, err
		}
		if err := tx.moveFollower(row, s); err != nil {
			return false, err
		}
		tx.followers.moved++
	}
	return more, nil
}

// moveFollower ends a session's wait for another one that has ended, or cancels it.
func (tx *Tx) moveFollower(row *storage.Row[sessionRecord], ended *sessionRecord) error {
	c, err := tx.changeSession(row)
	if err != nil {
		return err
	}
	if ended.Status == SessionCompleted {
		err = c.predecessorCompleted(ended.ID)
	} else {
		err = c.cancel(fmt.Sprintf("the session it was queued after is %s", ended.Status), byService)
	}
	if err != nil {
		return err
	}
	_, err = c.save()
	return err
}

// predecessorCompleted ends the wait for one session. The last one moves the session on.
func (c *sessionChange) predecessorCompleted(id SessionID) error {
	in := &c.s.Inner
	left := slices.DeleteFunc(slices.Clone(c.s.pending()), func(p SessionID) bool { return p == id })
	in.Predecessor, in.Pending = "", left
	if moved, err := c.advance(); err != nil || !moved {
		return err
	}
	return c.logActivity(ActivityStatus, "The session it was queued after is completed.")
}

// moveFollowersOp moves the remaining followers of an ended session. If the session was retried
// meanwhile, they wait for its next end (Decision 59).
var moveFollowersOp = NewCommand[TimerIn, None]("MoveLine", "Move the sessions queued behind one that has ended", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	row, err := tx.timedSession(in)
	if err != nil || row == nil || !row.Value.Status.Ended() {
		return Reply{Outcome: NoContent}, err
	}
	return Reply{Outcome: NoContent}, tx.sessionHasEnded(&row.Value)
}, Prompt)
