package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// canViewSession reports, from the stored form, whether the caller may know that a session
// exists: callers who see its issue do. Every read of a session for a caller uses it.
func (v *View) canViewSession(rec storage.Record) (bool, error) {
	if lane := v.Caller.Lane; lane != nil {
		id, _ := storage.ParseID(storedText(rec.JSON(), "id"))
		return id == lane.Session, nil
	}
	if rec.Flags()&sessionOrphan != 0 {
		return v.canViewOrphan(rec)
	}
	if c := v.Caller; c.Level >= Admin && len(c.Hidden) == 0 {
		return true, nil // these callers see every issue, and a session without one is an orphan
	}
	return v.hasIssue(issueIn(rec))
}

// canViewOrphan is canViewSession for a session whose issue was deleted. The issue's team decides.
func (v *View) canViewOrphan(rec storage.Record) (bool, error) {
	switch c := v.Caller; {
	case !c.CanViewTeam(rec.Team()):
		return false, nil
	case c.Root || c.Level >= Admin:
		return true, nil
	case rec.Flags()&sessionVeiled != 0:
		return false, nil
	}
	// A deleted team may have been private, so nobody but admins sees its sessions.
	there, err := v.Has(teamTable, storage.Key(nil).DescID(rec.Team()))
	if err != nil {
		return false, fmt.Errorf("look for the team of a deleted issue: %w", err)
	}
	return there, nil
}

// decidesByRecord reports whether canViewSession decides without a look at another record.
func (v *View) decidesByRecord(rec storage.Record) bool {
	c := v.Caller
	return c.Lane != nil || c.Level >= Admin && (len(c.Hidden) == 0 || rec.Flags()&sessionOrphan != 0)
}

// issueIn returns the issue of a stored session. The field comes before all text from
// clients.
func issueIn(rec storage.Record) storage.ID {
	id, _ := storage.ParseID(storedText(rec.JSON(), "issueId"))
	return id
}

// session returns a session, or nil if it does not exist or the caller may not see it.
// A lane token gives access to its own session only.
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
		seen, err := v.canViewSession(rec)
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

// sessionToChange begins a change of a session. It returns NOT_FOUND if the session
// does not exist or the caller may not see it.
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

// innerMark separates the public part of a stored record from the inner part. Searching
// from the end is exact: the inner part has no text from clients.
var innerMark = []byte(`,"inner":{`)

// publicPart returns the public part of a stored record, without its closing brace.
func publicPart(body []byte) []byte {
	if at := bytes.LastIndex(body, innerMark); at >= 0 {
		return body[:at]
	}
	return bytes.TrimSuffix(body, []byte("}"))
}

// innerPart returns the inner part of a stored record, an object.
func innerPart(body []byte) []byte {
	if at := bytes.LastIndex(body, innerMark); at >= 0 {
		return body[at+len(innerMark)-1 : len(body)-1]
	}
	return []byte("{}")
}

// publicCopy returns a copy of the public part of a stored record.
func publicCopy(body []byte) []byte {
	public := publicPart(body)
	return append(append(make([]byte, 0, len(public)+64), public...), '}')
}

// lastText returns the text of one of the fields at the end of the public part,
// lastProgressAt and lastStateHash. No text from clients comes after them.
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

// derived returns the present derivedStatus of a stored session; "" stands for null.
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

// appendShown appends a session with its derivedStatus, as in the answers of GET and
// the list.
func (v *View) appendShown(b []byte, rec storage.Record) []byte {
	b = append(append(b, publicPart(rec.JSON())...), `,"derivedStatus":`...)
	if d := v.derived(rec); d != "" {
		b = append(append(append(b, '"'), d...), '"')
	} else {
		b = append(b, "null"...)
	}
	return append(appendUsage(b, storedUsage(rec)), '}')
}
