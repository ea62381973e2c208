package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// seesIssue decides from the stored form, without decoding it, whether the caller
// may know that an issue exists. Every read of an issue on a caller's behalf comes
// through here. An issue that is not restricted costs no look-up.
func (v *View) seesIssue(rec storage.Record) (bool, error) {
	c := v.Caller
	if lane := c.Lane; lane != nil {
		// Its own issue and no other, as long as the lane's maker sees it (Decision 36).
		id, err := storedID(rec)
		if err != nil || id != lane.Issue || c.Maker == nil {
			return false, err
		}
		c = c.Maker
	}
	if !c.Sees(rec.Team()) {
		return false, nil // a grant never widens (Decision 26)
	}
	if rec.Flags()&issueRestricted == 0 || c.Level >= Admin {
		return true, nil
	}
	id, err := storedID(rec)
	if err != nil {
		return false, err
	}
	return v.granted(c, id)
}

// seenIssue reads the id of an issue that a path names; NOT_FOUND when there is
// none or the caller may not see it.
func (v *View) seenIssue(text string) (storage.ID, error) {
	id, seen := storage.ParseID(text)
	if seen {
		var err error
		if seen, err = v.hasIssue(id); err != nil {
			return storage.ID{}, err
		}
	}
	if !seen {
		return storage.ID{}, NotFound("issue")
	}
	return id, nil
}

// storedID reads an issue's id off the beginning of its stored JSON.
func storedID(rec storage.Record) (storage.ID, error) {
	const open = `{"id":"`
	body := rec.JSON()
	if len(body) >= len(open)+36 && string(body[:len(open)]) == open {
		if id, ok := storage.ParseID(body[len(open) : len(open)+36]); ok {
			return id, nil
		}
	}
	return storage.ID{}, fmt.Errorf("%w: an issue's JSON does not begin with its id", storage.ErrFormat)
}

// issue decodes the issue that a path or body names; nil when there is none or the
// caller may not see it.
func (v *View) issue(id string) (row *storage.Row[Issue], err error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, nil
	}
	_, err = issues.Record(v, issueKey(parsed), func(rec storage.Record) (err error) {
		seen, err := v.seesIssue(rec)
		if err == nil && seen {
			row, err = issues.Decode(rec)
		}
		return err
	})
	return row, err
}

// hasIssue tells whether there is an issue that the caller may see.
func (v *View) hasIssue(id storage.ID) (seen bool, err error) {
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) (err error) {
		seen, err = v.seesIssue(rec)
		return err
	})
	return seen, err
}

// storedText finds the text of a field in an issue's stored JSON without decoding
// it; nil when it is null. The field must be one whose text needs no escaping.
//
// Looking for the bytes of `"field":"` is exact: inside a string every quote is
// escaped, and a closing quote with a colon behind it ends a name, never a value.
func storedText(body []byte, field string) []byte {
	var pattern [32]byte
	p := append(append(append(pattern[:0], '"'), field...), `":"`...)
	at := bytes.Index(body, p)
	if at < 0 {
		return nil
	}
	rest := body[at+len(p):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// parentIn gives the parent of a stored issue; the zero ID when it has none.
func parentIn(rec storage.Record) storage.ID {
	if rec.Flags()&issueHasParent == 0 {
		return storage.ID{}
	}
	id, _ := storage.ParseID(storedText(rec.JSON(), "parentId"))
	return id
}

// snoozedAt tells whether a stored issue is snoozed into the future.
func snoozedAt(rec storage.Record, now Timestamp) bool {
	return rec.Flags()&issueSnoozed != 0 && string(storedText(rec.JSON(), "snoozedUntil")) > string(now)
}
