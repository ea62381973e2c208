package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"switchyard/storage"
)

// The bounds on the cost of a page. A page that meets a bound ends early, with a cursor to
// continue from.
const (
	// maxExamined bounds the issues looked at, most of which a caller with hidden
	// teams, or a filter by the lack of something, may leave out.
	maxExamined = 100_000
	// grantsCost is how many more issues one counts as whose grants are looked at.
	grantsCost = 9
	// maxLeaps bounds how often the streams of a list's filters are moved: two long
	// ones with nothing in common would be walked whole otherwise.
	maxLeaps = 400_000
	// maxWholeBytes bounds the body of a list that is given whole, but for its last
	// record.
	maxWholeBytes = 8 << 20
	// maxPageBytes bounds the body of any page, but for its last record.
	// The memory of a node's answers is bounded after they are built, so one page must be
	// small, and built without a pause.
	maxPageBytes = 1 << 20
)

// issuePage walks a list of issues and builds the answer from their stored JSON.
type issuePage struct {
	limit       int
	whole       bool // given whole where it can be
	examine     int  // how many issues may be looked at
	fingerprint uint64
	after       []byte // primary key to continue after; nil: from the newest
	keeps       func(pk []byte, rec storage.Record) (bool, error)
	visibility  visibility
}

// issueList is the issues that a page is taken from: those that satisfy all of matches
// or, if there is a selection, are selected, and are among docs.
type issueList struct {
	matches  []storage.Match
	selected *storage.Selection // nil: none
	docs     storage.Docs       // nil: any
	enough   bool               // set by walk: there may be more than was selected
}

func (l *issueList) close() (err error) {
	if l.selected != nil {
		err = l.selected.Close()
	}
	if l.docs != nil {
		err = errors.Join(err, l.docs.Close())
	}
	return err
}

// walk goes through the list from behind after. It closes what l holds.
func (l *issueList) walk(v *View, after []byte, fn func(pk []byte, rec storage.Record) (bool, error)) ([]byte, error) {
	leaps := maxLeaps
	if l.selected != nil {
		l.enough = l.selected.More()
		return issues.ListSelected(v, l.selected, l.docs, after, &leaps, fn)
	}
	if l.docs != nil {
		l.matches = append(l.matches, storage.FromDocs(issueTable, l.docs))
	}
	resume, err := issues.ListWithin(v, l.matches, after, &leaps, fn)
	v.filters.work += maxLeaps - leaps
	return resume, err
}

// build appends the answer to buf. An issue's place in the list is its primary
// key, which never changes, so pages neither repeat nor skip one.
func (p *issuePage) build(v *View, list issueList, buf []byte) ([]byte, error) {
	buf = append(buf, `{"issues":[`...)
	start, most := len(buf), maxPageBytes
	if p.whole {
		most = maxWholeBytes
	}
	var (
		count, examined int
		last            [storage.ListedKeyLen]byte // of the last issue examined
		more            bool
	)
	resume, err := list.walk(v, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		if examined+p.visibility.spent >= p.examine || len(buf)-start > most {
			more = true
			return false, nil
		}
		if rec.Flags()&issueRestricted != 0 {
			p.visibility.spent += grantsCost
		}
		keep, err := p.keeps(pk, rec)
		if err != nil {
			return false, err
		}
		if keep && count == p.limit { // the one that shows there is another page
			more = true
			return false, nil
		}
		examined++
		copy(last[:], pk)
		if keep {
			if count > 0 {
				buf = append(buf, ',')
			}
			if buf, _, err = p.visibility.append(buf, rec); err != nil {
				return false, err
			}
			count++
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if resume != nil {
		more = true
		copy(last[:], resume)
	}
	if list.selected == nil {
		v.filters.work += max(0, examined-count)
	}
	more = more || list.enough // the page left out some of the issues that were to fill it
	return p.end(buf, more, last[:]), nil
}

func (p *issuePage) end(buf []byte, more bool, last []byte) []byte {
	buf = append(buf, ']')
	if more {
		buf = append(buf, `,"nextCursor":"`...)
		buf = appendCursor(buf, p.fingerprint, last)
		buf = append(buf, '"')
	}
	return append(buf, '}')
}

// cursorVersion is the first byte of a cursor. Behind it stand the fingerprint of
// the query (8 bytes) and the last primary key (16), all in base64url.
const (
	cursorVersion = 1
	cursorLen     = 1 + 8 + storage.ListedKeyLen
)

func appendCursor(b []byte, fingerprint uint64, last []byte) []byte {
	var raw [cursorLen]byte
	raw[0] = cursorVersion
	binary.BigEndian.PutUint64(raw[1:], fingerprint)
	copy(raw[9:], last)
	return base64.RawURLEncoding.AppendEncode(b, raw[:])
}

// parseCursor reads a cursor of the query with this fingerprint.
func parseCursor(cursor string, fingerprint uint64) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) != cursorLen || raw[0] != cursorVersion {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: "Not a valid cursor. Send the nextCursor of a page as it is."})
	}
	if binary.BigEndian.Uint64(raw[1:]) != fingerprint {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: "Belongs to another query. Send it with the parameters of the page it came from."})
	}
	return raw[9:], nil
}
