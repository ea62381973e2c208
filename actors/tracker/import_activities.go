package tracker

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// importedLog has the activities of a session that a request brings. They are stored together: with each
// of them the record of the session changes, which may be long.
type importedLog struct {
	came []importedActivity
	// last is the id of the newest activity so far.
	last string
}

type importedActivity struct {
	id   string
	kind ActivityType
	body []byte
}

// takeActivity notes an activity for the log of its session.
func takeActivity(im *importing, data []byte) error {
	var a Activity
	if err := im.decode(data, &a); err != nil {
		return err
	}
	log, err := im.log(a.SessionID)
	if err != nil {
		return err
	}
	if len(a.Payload) > maxPayload {
		return im.refuse("data.payload must be at most %d bytes.", maxPayload)
	}
	session, _ := storage.ParseID(a.SessionID)
	if err := im.needNewer(a.ID, session); err != nil {
		return err
	}
	if a.ID <= log.last {
		return im.refuse("Activities must come in the order in which they were made.")
	}
	body, err := json.MarshalWithOption(&a, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode an activity: %w", err)
	}
	log.came, log.last = append(log.came, importedActivity{a.ID, a.Type, body}), a.ID
	return nil
}

// log returns the log of a session for the activities of this request.
func (im *importing) log(id SessionID) (*importedLog, error) {
	session, _ := storage.ParseID(id)
	if log := im.logs[session]; log != nil {
		return log, nil
	}
	row, err := im.needSession(id)
	if err != nil {
		return nil, err
	}
	if im.logs == nil {
		im.logs = map[storage.ID]*importedLog{}
	}
	im.logs[session] = &importedLog{last: row.Value.Inner.LastActivity}
	return im.logs[session], nil
}

// storeLogs stores the activities that the lines of this request have brought.
func (im *importing) storeLogs() error {
	byID := func(a, b storage.ID) int { return bytes.Compare(a[:], b[:]) }
	for _, session := range slices.SortedFunc(maps.Keys(im.logs), byID) {
		if err := im.storeLog(session); err != nil {
			return err
		}
	}
	return nil
}

// storeLog appends the activities of a session that have come so far to its log.
func (im *importing) storeLog(session storage.ID) error {
	log := im.logs[session]
	if log == nil {
		return nil
	}
	delete(im.logs, session)
	if len(log.came) == 0 {
		return nil
	}
	row, err := sessions.Get(im.tx, sessionKey(session))
	if err == nil && row == nil {
		err = fmt.Errorf("session %s is gone", session)
	}
	if err != nil {
		return err
	}
	s := row.Value
	in := &s.Inner
	for i := range log.came {
		a := &log.came[i]
		in.Last++
		in.LastActivity, in.LastType = a.id, a.kind
		if err := im.tx.Writer().AddValue(activityTable, activityKey(session, in.Last), a.body); err != nil {
			return err
		}
	}
	in.First = max(in.First, 1)
	if err := im.tx.trimLog(session, in); err != nil {
		return err
	}
	if _, err := sessions.Update(im.tx, row, &s); err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	return nil
}
