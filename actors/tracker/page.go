package tracker

import (
	"encoding/base64"

	"switchyard/storage"
)

// PageIn asks for a page of a short list: without a limit the whole list is returned,
// unless its records are unusually large.
type PageIn struct {
	Limit  int    `query:"limit" rules:"min=1,max=100"`
	Cursor string `query:"cursor" rules:"max=1024"`
}

// PagedIn asks for a page of a list that may be long.
type PagedIn struct {
	Limit  int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string `query:"cursor" rules:"max=1024"`
}

// page builds the answer {"name":[...],"nextCursor"?} of a list from stored JSON. A
// position in the list is the key of the last record shown, so pages neither repeat nor
// skip a record.
type page struct {
	buf   []byte
	limit int // 0: no limit
	count int
	last  []byte
	more  bool
}

// newPage starts a page.
func newPage(buf []byte, name string, limit int) *page {
	buf = append(append(buf[:0], `{"`...), name...)
	return &page{buf: append(buf, `":[`...), limit: limit}
}

// add adds a record to the page; it returns false if the page is full, by number or
// bytes, and the record belongs to the next one.
func (p *page) add(key, body []byte) bool {
	most := maxPageBytes
	if p.limit == 0 {
		most = maxWholeBytes
	}
	if p.limit > 0 && p.count == p.limit || len(p.buf) > most {
		p.more = true
		return false
	}
	if p.count > 0 {
		p.buf = append(p.buf, ',')
	}
	p.buf = append(p.buf, body...)
	p.last = append(p.last[:0], key...)
	p.count++
	return true
}

// reply ends the page. list and about bind the cursor to its query.
func (p *page) reply(list storage.TableID, about storage.ID) Reply {
	p.buf = append(p.buf, ']')
	if p.more {
		p.buf = append(p.buf, `,"nextCursor":"`...)
		p.buf = append(p.buf, keyCursor(list, about, p.last)...)
		p.buf = append(p.buf, '"')
	}
	return Reply{Body: append(p.buf, '}')}
}

// A cursor is the URL-safe Base64 of its version, the list, the subject of the list
// (for example a workspace), and the key after which to continue.
const placeVersion = 2

func keyCursor(list storage.TableID, about storage.ID, key []byte) string {
	raw := append([]byte{placeVersion, byte(list)}, about[:]...)
	return base64.RawURLEncoding.EncodeToString(append(raw, key...))
}

// parseCursorKey returns the key in a cursor of a list, or nil for no cursor.
func parseCursorKey(cursor string, list storage.TableID, about storage.ID) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= 2+len(about) || raw[0] != placeVersion {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: "Not a valid cursor. Send the nextCursor of a page as it is."})
	}
	if raw[1] != byte(list) || storage.ID(raw[2:18]) != about {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: "Belongs to another query. Send it with the parameters of the page it came from."})
	}
	return raw[18:], nil
}
