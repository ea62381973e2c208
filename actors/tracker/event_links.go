package tracker

import (
	"bytes"

	"switchyard/storage"
)

// linkAt is the position of another issue's id in an event's body.
type linkAt struct {
	from, to int // with quotes
	place    *issueState
	// item is set for the items of a list; first for the first of them. A hidden item is
	// left out, any other hidden link becomes null.
	item, first bool
}

// linkSet is a set of the links of an event, by their positions. An issue has few enough
// blockers for the ids of all of them.
type linkSet [4]uint64

const maxLinks = 4 * 64

func (s *linkSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *linkSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// quotedID is the length of an id with quotes.
const quotedID = len(`"01890000-0000-7000-8000-000000000000"`)

// findLinks collects the ids of other issues in a field: in the event's data, and in
// its changes.
func (r *eventReader) findLinks(e *storedEvent, at, end int, name string) error {
	const from, to = `{"from":`, `,"to":`
	field := `"` + name + `":`
	if i := bytes.Index(e.body[at:end], []byte(field+`"`)); i >= 0 {
		if err := r.noteLink(e, at+i+len(field)); err != nil {
			return err
		}
	}
	i := bytes.Index(e.body[end:], []byte(field+from))
	if i < 0 {
		return nil
	}
	first := end + i + len(field+from)
	if err := r.noteLink(e, first); err != nil {
		return err
	}
	i = bytes.Index(e.body[first:], []byte(to))
	if i < 0 {
		return errEvent
	}
	return r.noteLink(e, first+i+len(to))
}

// findReleasers collects the ids in releasedBy.
func (r *eventReader) findReleasers(e *storedEvent, at, end int) error {
	i := bytes.LastIndex(e.body[at:end], []byte(releasersField))
	if i < 0 {
		return errEvent
	}
	first := true
	for at += i + len(releasersField); at < end && e.body[at] == '"'; at += quotedID {
		before := len(e.links)
		if err := r.noteLink(e, at); err != nil {
			return err
		}
		if len(e.links) == before || before == maxLinks {
			return errEvent
		}
		e.links[before].item, e.links[before].first = true, first
		if first = false; at+quotedID < end && e.body[at+quotedID] == ',' {
			at++
		}
	}
	return nil
}

// noteLink adds the id at a position of an event's body, unless the value is null.
func (r *eventReader) noteLink(e *storedEvent, at int) error {
	if e.body[at] != '"' || len(e.body) < at+quotedID {
		return nil
	}
	id, ok := storage.ParseID(e.body[at+1 : at+quotedID-1])
	if !ok {
		return nil
	}
	place, err := r.issueStateOf(id)
	e.links = append(e.links, linkAt{from: at, to: at + quotedID, place: place})
	return err
}

// hidden returns the links to issues that the view's caller may not see (Decision 26).
func (r *eventReader) hidden(e *storedEvent) (hidden linkSet, err error) {
	for i := range e.links {
		shown, err := r.showsLink(e.links[i].place)
		if err != nil {
			return linkSet{}, err
		}
		if !shown {
			hidden.add(i)
		}
	}
	return hidden, nil
}

// showsLink reports whether the view's caller may see a linked issue. A deleted one is seen
// by those who could see it at its deletion, or by admins alone if it was restricted.
func (r *eventReader) showsLink(p *issueState) (bool, error) {
	if c := r.v.Caller; c.Level < Admin && c.Lane == nil && !p.there && p.gone && !p.restricted {
		return r.canViewTeam(p.team)
	}
	return r.canViewPlace(p)
}

// appendBody appends an event's JSON without hidden links.
func (e *storedEvent) appendBody(dst []byte, hidden *linkSet) []byte {
	at, listed := 0, false
	for i, l := range e.links {
		switch {
		case !l.item && hidden.has(i):
			dst = append(append(dst, e.body[at:l.from]...), "null"...)
			at = l.to
		case l.item:
			if l.first {
				dst = append(dst, e.body[at:l.from]...)
			}
			if at = l.to; hidden.has(i) {
				continue
			}
			if listed {
				dst = append(dst, ',')
			}
			dst, listed = append(dst, e.body[l.from:l.to]...), true
		}
	}
	return append(dst, e.body[at:]...)
}
