package tracker

import (
	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// listedPage builds a page of records that belong to issues, such as sessions and
// drafts, from their stored JSON. It shows those that the caller may see.
type listedPage struct {
	v     *View
	limit int
	// sees reports whether the caller may see a record; add appends one to buf.
	sees func(rec storage.Record) (bool, error)
	add  func(rec storage.Record) error

	issues map[storage.ID]bool // by issue: whether the caller sees its records
	buf    []byte
	count  int
	looked int
}

// list returns a page of records after a cursor, with the given name. It ends the page
// early, with a cursor, before it becomes much work or a large answer.
func (p *listedPage) list(name string, within func(fn func(pk []byte, rec storage.Record) (bool, error)) (resume []byte, err error), fingerprint uint64) ([]byte, error) {
	p.buf = append(append(append(p.v.Buf[:0], `{"`...), name...), `":[`...)
	var last [storage.ListedKeyLen]byte
	more := false
	resume, err := within(func(pk []byte, rec storage.Record) (bool, error) {
		if p.looked == maxExamined || len(p.buf) > maxPageBytes {
			more = true
			return false, nil
		}
		seen, err := p.sees(rec)
		if err != nil {
			return false, err
		}
		if seen && p.count == p.limit {
			more = true
			return false, nil
		}
		p.looked++
		copy(last[:], pk)
		if !seen {
			return true, nil
		}
		if p.count > 0 {
			p.buf = append(p.buf, ',')
		}
		p.count++
		return true, p.add(rec)
	})
	if err != nil {
		return nil, err
	}
	if resume != nil {
		more = true
		copy(last[:], resume)
	}
	return (&issuePage{fingerprint: fingerprint}).end(p.buf, more, last[:]), nil
}

// byIssue calls sees once for each issue.
func (p *listedPage) byIssue(rec storage.Record, sees func(storage.Record) (bool, error)) (bool, error) {
	issue := issueIn(rec)
	if seen, known := p.issues[issue]; known {
		return seen, nil
	}
	seen, err := sees(rec)
	if p.issues == nil {
		p.issues = map[storage.ID]bool{}
	}
	p.issues[issue] = seen
	return seen, err
}

// listFingerprint binds a cursor to a list and its filters.
func listFingerprint(workspace storage.ID, list string, filters ...Opt[string]) uint64 {
	h := xxhash.New()
	_, _ = h.Write(workspace[:])
	_, _ = h.WriteString(list)
	for _, filter := range filters {
		if filter.Set {
			_, _ = h.Write([]byte{1})
		}
		_, _ = h.WriteString(filter.Value)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// cursorPosition returns the position in a cursor, or nil for the beginning.
func cursorPosition(cursor Opt[string], fingerprint uint64) ([]byte, error) {
	if !cursor.Set {
		return nil, nil
	}
	return parseCursor(cursor.Value, fingerprint)
}
