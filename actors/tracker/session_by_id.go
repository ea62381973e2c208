package tracker

import (
	"bytes"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// ShownSession is a session in the answers of GET and the list.
type ShownSession struct {
	AgentSession
	SessionDetails
	DerivedStatus *string `json:"derivedStatus" enum:"stalled,needs_input"`
	// Usage is what agents have used for the session.
	Usage Usage `json:"usage"`
	// WaitingFor is the reason why no agent works on the session; null for none.
	WaitingFor *WaitingFor `json:"waitingFor,omitempty"`
	// Plan is the agent's plan, in the answer of GET alone; null for none.
	Plan *[]PlanStep `json:"plan,omitempty"`
}

// SessionByIDIn identifies a session, and the version that the caller has.
type SessionByIDIn struct {
	ID          SessionID `path:"id"`
	IfNoneMatch string    `header:"If-None-Match"`
}

// SessionByID reads one session.
var SessionByID = NewQuery[SessionByIDIn, ShownSession]("SessionByID", "Get a session", Needs{Read, "sessions"}, sessionByID, ForLanes, Answers(Done, NotModified))

func sessionByID(v *View, in *SessionByIDIn) (Reply, error) {
	reply, alone, err := v.readSession(in, false)
	if err == nil && !alone {
		err = v.ofOneMoment(func() (err error) { reply, _, err = v.readSession(in, true); return err })
	}
	return reply, err
}

// readSession answers with a session. Unless the view is settled it does so only when the
// record alone decides; alone is false otherwise.
func (v *View) readSession(in *SessionByIDIn, settled bool) (reply Reply, alone bool, err error) {
	alone, err = v.lookAtSession(in.ID, settled, func(rec storage.Record) (_ bool, err error) {
		if !settled && mayWait(rec) {
			return false, nil
		}
		x := explainer{v: v}
		v.Buf, err = x.appendTo(v.Buf[:0], rec)
		if err != nil {
			return false, err
		}
		reply.ETag = waitingTag(sessionTag(rec.Version(), v.derived(rec)), v.Buf)
		if in.IfNoneMatch != "" && tagListed(in.IfNoneMatch, reply.ETag, true) {
			reply.Outcome = NotModified
			return true, nil
		}
		if !settled && hasPlan(rec) {
			return false, nil
		}
		waiting := bytes.Clone(v.Buf)
		v.Buf = v.appendShown(v.Buf[:0], rec)
		v.Buf = append(append(v.Buf[:len(v.Buf)-1], `,"waitingFor":`...), waiting...)
		v.Buf, err = v.appendPlan(append(v.Buf, '}'), rec)
		reply.Body = v.Buf
		return true, err
	})
	return reply, alone, err
}

// sessionTag returns the ETag of a session: its version, and its derivedStatus, which
// changes with time alone.
func sessionTag(version uint64, derived string) string {
	if derived == "" {
		return etag(version)
	}
	return `"` + strconv.FormatUint(version, 10) + "-" + derived + `"`
}

// changedTag returns the ETag that a session has which has just changed: that of SessionByID,
// though answers to changes don't say what the session waits for.
func (tx *Tx) changedTag(version uint64, s *sessionRecord) (string, error) {
	x := explainer{v: &tx.View}
	waiting, err := x.append(nil, s)
	return waitingTag(sessionTag(version, s.derivedNow()), waiting), err
}

// waitingTag returns the ETag of a session with what it waits for, which changes without
// the session.
func waitingTag(tag string, waiting []byte) string {
	if string(waiting) == "null" {
		return tag
	}
	return tag[:len(tag)-1] + "-" + strconv.FormatUint(xxhash.Sum64(waiting), 16) + `"`
}

// sessionRecord passes the stored form of a session to fn; it returns NOT_FOUND if the
// session does not exist or the caller may not see it.
func (v *View) sessionRecord(id SessionID, fn func(storage.Record) error) error {
	_, err := v.lookAtSession(id, true, func(rec storage.Record) (bool, error) { return true, fn(rec) })
	return err
}

// lookAtSession is sessionRecord for views that may not be settled. Where they are not, it
// calls fn only if the record alone says whether the caller may see it, and returns
// whether the record sufficed, which fn reports as well.
func (v *View) lookAtSession(id SessionID, settled bool, fn func(storage.Record) (alone bool, err error)) (alone bool, err error) {
	parsed, ok := storage.ParseID(id)
	if lane := v.Caller.Lane; lane != nil && parsed != lane.Session {
		return true, ForeignLane()
	}
	if !ok {
		return true, NotFound("session")
	}
	seen := false
	alone = true
	_, err = sessions.Record(v, sessionKey(parsed), func(rec storage.Record) (err error) {
		if alone = settled || v.decidesByRecord(rec); !alone {
			return nil
		}
		if seen, err = v.canViewSession(rec); err == nil && seen {
			err = v.awaitTurn(rec)
		}
		if err == nil && seen {
			alone, err = fn(rec)
		}
		return err
	})
	if err == nil && alone && !seen {
		err = NotFound("session")
	}
	return alone, err
}
