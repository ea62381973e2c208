package tracker

import (
	"strconv"

	"switchyard/storage"
)

// ShownSession is a session in the answers of GET and the list.
type ShownSession struct {
	AgentSession
	DerivedStatus *string `json:"derivedStatus" enum:"stalled,needs_input"`
}

// SessionByIDIn identifies a session, and the version that the caller has.
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

// sessionTag returns the ETag of a session: its version, and its derivedStatus, which
// changes with time alone.
func sessionTag(version uint64, derived string) string {
	if derived == "" {
		return etag(version)
	}
	return `"` + strconv.FormatUint(version, 10) + "-" + derived + `"`
}

// sessionRecord passes the stored form of a session to fn; it returns NOT_FOUND if the
// session does not exist or the caller may not see it.
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
