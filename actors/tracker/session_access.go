package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// seesSession decides from the stored form whether the caller may know that a
// session exists: whoever sees its issue does. Every read of a session on a
// caller's behalf comes through here.
func (v *View) seesSession(rec storage.Record) (bool, error) {
	if lane := v.Caller.Lane; lane != nil {
		id, _ := storage.ParseID(storedText(rec.JSON(), "id"))
		return id == lane.Session, nil
	}
	flags := rec.Flags()
	if flags&sessionOrphan != 0 {
		return v.Caller.Sees(rec.Team()) && (flags&sessionVeiled == 0 || v.Caller.Root || v.Caller.Level >= Admin), nil
	}
	if c := v.Caller; c.Level >= Admin && len(c.Hidden) == 0 {
		return true, nil // they see every issue, and a session without one is an orphan
	}
	return v.hasIssue(issueIn(rec))
}

// issueIn gives the issue of a stored session. Its name stands in front of all
// texts that come from outside.
func issueIn(rec storage.Record) storage.ID {
	id, _ := storage.ParseID(storedText(rec.JSON(), "issueId"))
	return id
}

// session reads the session that a path or body names; nil when there is none or
// the caller may not see it. A lane token opens no other session than its own.
func (v *View) session(id SessionID) (row *storage.Row[sessionRecord], err error) {
	parsed, ok := storage.ParseID(id)
	if lane := v.Caller.Lane; lane != nil {
		if parsed != lane.Session {
			return nil, ForeignLane()
		}
		if v.lane != nil {
			return v.lane, nil
		}
	}
	if !ok {
		return nil, nil
	}
	_, err = sessions.Record(v, sessionKey(parsed), func(rec storage.Record) error {
		seen, err := v.seesSession(rec)
		if err == nil && seen {
			row, err = sessions.Decode(rec)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read a session: %w", err)
	}
	return row, nil
}

// sessionToChange begins the change of the session that a path names; NOT_FOUND
// when there is none or the caller may not see it.
func (tx *Tx) sessionToChange(id SessionID) (*sessionChange, error) {
	row, err := tx.session(id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, NotFound("session")
	}
	return tx.changeSession(row)
}

// innerMark stands between what clients get of a stored session and what they
// don't. Looked for from the end it is exact: nothing behind it comes from outside.
var innerMark = []byte(`,"inner":{`)

// publicPart is what clients get of a stored session, without its closing brace.
func publicPart(body []byte) []byte {
	if at := bytes.LastIndex(body, innerMark); at >= 0 {
		return body[:at]
	}
	return bytes.TrimSuffix(body, []byte("}"))
}

// innerPart is the rest of it, an object.
func innerPart(body []byte) []byte {
	if at := bytes.LastIndex(body, innerMark); at >= 0 {
		return body[at+len(innerMark)-1 : len(body)-1]
	}
	return []byte("{}")
}

// publicCopy is what clients get of a stored session, in memory of its own.
func publicCopy(body []byte) []byte {
	public := publicPart(body)
	return append(append(make([]byte, 0, len(public)+64), public...), '}')
}

// lastText finds the text of one of the fields at the end of what clients get,
// lastProgressAt and lastStateHash, behind which nothing comes from outside.
func lastText(public []byte, field string) []byte {
	at := bytes.LastIndex(public, []byte(`,"`+field+`":"`))
	if at < 0 {
		return nil
	}
	rest := public[at+len(field)+5:]
	if end := bytes.IndexByte(rest, '"'); end >= 0 {
		return rest[:end]
	}
	return nil
}

// The values of derivedStatus (Decision 31).
const (
	derivedStalled    = "stalled"
	derivedNeedsInput = "needs_input"
)

// derived is the derivedStatus of a stored session at this moment; "" for null.
func (v *View) derived(rec storage.Record) string {
	switch flags := rec.Flags(); {
	case flags&sessionHasEnded != 0:
		return ""
	case flags&(sessionIsWaiting|sessionAsks) != 0:
		return derivedNeedsInput
	case flags&sessionIsRunning == 0:
		return ""
	}
	last := Timestamp(lastText(publicPart(rec.JSON()), "lastProgressAt")).Time()
	if !last.IsZero() && v.now.Sub(last) >= v.operator.stallAfter() {
		return derivedStalled
	}
	return ""
}

// appendShown appends a session with its derivedStatus, as GET and the list have it.
func (v *View) appendShown(b []byte, rec storage.Record) []byte {
	b = append(append(b, publicPart(rec.JSON())...), `,"derivedStatus":`...)
	if d := v.derived(rec); d != "" {
		b = append(append(append(b, '"'), d...), '"')
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}
