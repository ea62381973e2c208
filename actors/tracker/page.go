package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/cespare/xxhash/v2"

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

// The bounds on the cost of a page. A page that meets a bound ends early, with a cursor to
// continue from.
const (
	// maxExamined bounds the records looked at, most of which a caller with hidden
	// teams, or a filter by the lack of something, may leave out.
	maxExamined = 100_000
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

// pageSpec specifies a page of a list.
type pageSpec struct {
	name   string      // of the list in the answer
	limit  int         // 0: no limit
	cursor Opt[string] // the nextCursor of the page before
	query  uint64      // of listQuery
	keyLen int         // length of a position in the list; 0: lengths differ
}

// page builds the answer {"name":[...],"nextCursor"?} of a list from stored JSON. A
// position in the list is a key that never changes, such as the primary key of a record,
// so pages neither repeat nor skip a record.
type page struct {
	after []byte // the position to continue after; nil: from the beginning

	buf     []byte
	query   uint64
	limit   int // 0: no limit
	most    int // bound on len(buf), but for the last record
	examine int // bound on looked and spent
	count   int // records shown
	looked  int // records looked at
	spent   int // other work, as a number of records
	more    bool
	last    []byte   // position of the last record looked at
	place   [32]byte // has most positions
}

// newPage starts a page in buf. It refuses a cursor of another list.
func newPage(buf []byte, spec pageSpec) (p page, err error) {
	if spec.cursor.Set {
		if p.after, err = parseCursor(spec.cursor.Value, spec.query, spec.keyLen); err != nil {
			return page{}, err
		}
	}
	p.query, p.limit, p.most, p.examine = spec.query, spec.limit, maxPageBytes, maxExamined
	if p.limit == 0 {
		p.most = maxWholeBytes
	}
	p.buf = append(append(append(buf[:0], `{"`...), spec.name...), `":[`...)
	return p, nil
}

// mayLook reports whether the page may look at one more record. It ends the page before
// it becomes much work or a large answer.
func (p *page) mayLook() bool {
	if p.looked+p.spent >= p.examine || len(p.buf) > p.most {
		p.more = true
	}
	return !p.more
}

// hasRoom reports whether the page may show one more record. Otherwise the record belongs
// to the next page.
func (p *page) hasRoom() bool {
	if p.limit > 0 && p.count == p.limit || len(p.buf) > p.most {
		p.more = true
	}
	return !p.more
}

// pass notes the position of a record that was looked at.
func (p *page) pass(key []byte) {
	p.setLast(key)
	p.looked++
}

func (p *page) setLast(key []byte) {
	if p.last == nil {
		p.last = p.place[:0]
	}
	p.last = append(p.last[:0], key...)
}

// show begins a record in buf.
func (p *page) show() {
	if p.count > 0 {
		p.buf = append(p.buf, ',')
	}
	p.count++
}

// add adds a record at a position. It returns false if the page has no room.
func (p *page) add(key, body []byte) bool {
	if !p.hasRoom() {
		return false
	}
	p.pass(key)
	p.show()
	p.buf = append(p.buf, body...)
	return true
}

// eachRecord is given the records of a list with their positions, until it returns false.
type eachRecord = func(pk []byte, rec storage.Record) (bool, error)

// fill fills the page from a list of which it shows some records. walk goes through the
// list, and returns the position to resume from if it ended early. keeps reports whether
// a record is shown, and show appends a record to a buffer.
func (p *page) fill(walk func(fn eachRecord) (resume []byte, err error), keeps eachRecord, show func(b []byte, rec storage.Record) ([]byte, error)) error {
	resume, err := walk(func(pk []byte, rec storage.Record) (bool, error) {
		if !p.mayLook() {
			return false, nil
		}
		keep, err := keeps(pk, rec)
		if err != nil || keep && !p.hasRoom() {
			return false, err
		}
		p.pass(pk)
		if !keep {
			return true, nil
		}
		p.show()
		p.buf, err = show(p.buf, rec)
		return err == nil, err
	})
	if resume != nil {
		p.more = true
		p.setLast(resume)
	}
	return err
}

// reply ends the page.
func (p *page) reply() Reply {
	last := p.last
	switch {
	case last != nil:
	case p.after != nil:
		last = p.after // the page looked at nothing
	default:
		last = p.place[:storage.ListedKeyLen] // before all others
	}
	return p.replyWith(func(b []byte) []byte { return appendCursor(b, p.query, last) })
}

// replyWith ends the page with a cursor of the caller's own.
func (p *page) replyWith(appendNext func([]byte) []byte) Reply {
	p.buf = append(p.buf, ']')
	if p.more {
		p.buf = append(appendNext(append(p.buf, `,"nextCursor":"`...)), '"')
	}
	return Reply{Body: append(p.buf, '}')}
}

// listQuery returns the number of a list and its filters, to which a cursor belongs.
// subject is what the list is about, for example a workspace.
func listQuery(subject storage.ID, list string, filters ...Opt[string]) uint64 {
	b := append(make([]byte, 0, 256), subject[:]...)
	b = append(append(b, list...), 0)
	for _, filter := range filters {
		if filter.Set {
			b = append(b, 1)
		}
		b = append(append(b, filter.Value...), 0)
	}
	return xxhash.Sum64(b)
}

// sent returns a cursor of a query in which an empty one counts as none.
func sent(cursor string) Opt[string] { return Opt[string]{Set: cursor != "", Value: cursor} }

// A cursor is the URL-safe Base64 of its version, the number of its list and filters (8
// bytes), the position after which to continue, and a checksum (4 bytes): positions of
// many lists differ in length, so that a part of a cursor would be taken for a whole one.
const (
	cursorVersion = 3
	cursorHead    = 1 + 8
	cursorTail    = 4
)

// badCursor is the message for a text that is no cursor.
const badCursor = "Not a valid cursor. Send the nextCursor of a page as it is."

func appendCursor(b []byte, query uint64, key []byte) []byte {
	raw := append(make([]byte, 0, 64), cursorVersion)
	raw = append(binary.BigEndian.AppendUint64(raw, query), key...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(xxhash.Sum64(raw)))
	return base64.RawURLEncoding.AppendEncode(b, raw)
}

// parseCursor returns the position in a cursor of a list. keyLen is its length, or 0.
func parseCursor(cursor string, query uint64, keyLen int) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	end := len(raw) - cursorTail
	// The decoder skips line breaks.
	if err != nil || strings.ContainsAny(cursor, "\r\n") || end <= cursorHead || raw[0] != cursorVersion || keyLen > 0 && end != cursorHead+keyLen ||
		uint64(binary.BigEndian.Uint32(raw[end:])) != xxhash.Sum64(raw[:end])&math.MaxUint32 {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: badCursor})
	}
	if binary.BigEndian.Uint64(raw[1:]) != query {
		return nil, BadRequest(Fault{Path: "query.cursor", Message: "Belongs to another query. Send it with the parameters of the page it came from."})
	}
	return raw[cursorHead:end], nil
}

// behind returns the primary key of a position within a prefix, or nil for the
// beginning.
func behind(prefix, after []byte) []byte {
	if len(after) == 0 {
		return nil
	}
	return append(append([]byte(nil), prefix...), after...)
}

// listRecords lists the records of a table in the order of their keys; show, if not
// nil, selects them.
func listRecords[T any](v *View, in *PageIn, name string, table *storage.Table[T], show func(storage.Record) bool) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{name: name, limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(v.Workspace(), name)})
	if err != nil {
		return Reply{}, err
	}
	err = table.Scan(v, nil, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		return show != nil && !show(rec) || p.add(pk, rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list %s: %w", name, err)
	}
	return p.reply(), nil
}

// listByAge lists the records of a table whose primary keys are not in the order of
// creation, by an index of the time of creation.
func listByAge[T any](v *View, in *PageIn, name string, index storage.TableID, table *storage.Table[T]) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{name: name, limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(v.Workspace(), name)})
	if err != nil {
		return Reply{}, err
	}
	from := p.after
	if len(from) > 0 {
		from = append(from, 0) // the first key after it
	}
	err = v.Rows(index, nil, from, func(fields, _ []byte) (bool, error) {
		more := false
		there, err := table.Record(v, fields[8:], func(rec storage.Record) error {
			more = p.add(fields, rec.JSON())
			return nil
		})
		if err == nil && !there {
			err = fmt.Errorf("%w: an entry by age names a %s that is not there", storage.ErrFormat, table.Name)
		}
		return more, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list %s: %w", name, err)
	}
	return p.reply(), nil
}
