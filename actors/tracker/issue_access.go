package tracker

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// canViewIssue reports, from the stored form without decoding it, whether the caller may
// know that an issue exists. Every read of an issue for a caller uses it. An issue that
// is not restricted costs no look-up.
func (v *View) canViewIssue(rec storage.Record) (bool, error) {
	c := v.Caller
	if lane := c.Lane; lane != nil {
		// A lane sees its own issue only, as long as the lane's maker sees it (Decision
		// 36).
		id, err := storedID(rec)
		if err != nil || id != lane.Issue || c.Maker == nil {
			return false, err
		}
		c = c.Maker
	}
	return v.callerCanView(c, rec)
}

// callerCanView reports whether a caller, which has no lane token, may know that an issue
// exists.
func (v *View) callerCanView(c *Caller, rec storage.Record) (bool, error) {
	if !c.CanViewTeam(rec.Team()) {
		return false, nil // a grant does not override the team (Decision 26)
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

// seenIssue parses the id of an issue in a path; it returns NOT_FOUND if the issue does
// not exist or the caller may not see it.
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

// storedID returns the id at the beginning of an issue's stored JSON.
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

// issue returns an issue, or nil if it does not exist or the caller may not see it.
func (v *View) issue(id string) (row *storage.Row[Issue], err error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, nil
	}
	_, err = issues.Record(v, issueKey(parsed), func(rec storage.Record) (err error) {
		seen, err := v.canViewIssue(rec)
		if err == nil && seen {
			row, err = issues.Decode(rec)
		}
		return err
	})
	return row, err
}

// hasIssue reports whether an issue exists that the caller may see.
func (v *View) hasIssue(id storage.ID) (seen bool, err error) {
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) (err error) {
		seen, err = v.canViewIssue(rec)
		return err
	})
	return seen, err
}

// storedText returns the text of a field in stored JSON without decoding it, or nil if
// it is null. The field must be one whose text needs no escaping.
//
// Searching for the bytes of `"field":"` is exact: inside a string every quote is
// escaped, and a closing quote before a colon ends a name, never a value.
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

// parentIn returns the parent of a stored issue, or the zero ID.
func parentIn(rec storage.Record) storage.ID {
	if rec.Flags()&issueHasParent == 0 {
		return storage.ID{}
	}
	id, _ := storage.ParseID(storedText(rec.JSON(), "parentId"))
	return id
}

// projectIn returns the project of a stored issue, "" for none, without decoding the rest: claims ask for
// it, and issues may be long.
func projectIn(rec storage.Record) (project string, err error) {
	const open = `"projectId":` // exact, as in storedText
	body := rec.JSON()
	at := bytes.Index(body, []byte(open+`"`))
	if at < 0 {
		return "", nil
	}
	text := body[at+len(open):]
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	if err := json.Unmarshal(text[:min(end+1, len(text))], &project); err != nil {
		return "", fmt.Errorf("decode an issue's project: %w", err)
	}
	return project, nil
}

// snoozedAt reports whether a stored issue is snoozed at a time.
func snoozedAt(rec storage.Record, now Timestamp) bool {
	return rec.Flags()&issueSnoozed != 0 && string(storedText(rec.JSON(), "snoozedUntil")) > string(now)
}
