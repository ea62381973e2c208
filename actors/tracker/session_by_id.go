package tracker

import (
	"strconv"

	"switchyard/storage"
)

// ShownSession is a session as GET and the list have it.
type ShownSession struct {
	AgentSession
	DerivedStatus *string `json:"derivedStatus" enum:"stalled,needs_input"`
}

// SessionByIDIn names a session, and the version the caller already has.
type SessionByIDIn struct {
	ID          SessionID `path:"id"`
	IfNoneMatch string    `header:"If-None-Match"`
}

// SessionByID reads one session.
var SessionByID = NewQuery[SessionByIDIn, ShownSession]("SessionByID", "Get a session", Needs{Read, "sessions"}, sessionByID, OneMoment, ForLanes)

func sessionByID(v *View, in *SessionByIDIn) (Reply, error) {
	reply := Reply{}
	err := v.sessionRecord(in.ID, func(rec storage.Record) error {
		reply.ETag = sessionTag(rec.Version(), v.derived(rec))
		if in.IfNoneMatch != "" && tagListed(in.IfNoneMatch, reply.ETag, true) {
			reply.Outcome = NotModified
			return nil
		}
		v.Buf = v.appendShown(v.Buf[:0], rec)
		reply.Body = v.Buf
		return nil
	})
	return reply, err
}

// sessionTag is the ETag of a session: its version, and what time alone changes.
func sessionTag(version uint64, derived string) string {
	if derived == "" {
		return etag(version)
	}
	return `"` + strconv.FormatUint(version, 10) + "-" + derived + `"`
}

// sessionRecord hands the stored form of a session to fn; NOT_FOUND when there is
// none or the caller may not see it.
func (v *View) sessionRecord(id SessionID, fn func(storage.Record) error) error {
	parsed, ok := storage.ParseID(id)
	if lane := v.Caller.Lane; lane != nil && parsed != lane.Session {
		return ForeignLane()
	}
	if !ok {
		return NotFound("session")
	}
	seen := false
	_, err := sessions.Record(v, sessionKey(parsed), func(rec storage.Record) (err error) {
		if seen, err = v.seesSession(rec); err != nil || !seen {
			return err
		}
		return fn(rec)
	})
	if err == nil && !seen {
		err = NotFound("session")
	}
	return err
}
