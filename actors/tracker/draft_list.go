package tracker

import (
	"cmp"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// ListDraftsIn asks for a page of drafts, newest first.
type ListDraftsIn struct {
	Status    Opt[DraftStatus] `query:"status" enum:"pending,published,discarded"`
	SessionID Opt[string]      `query:"sessionId"`
	IssueID   Opt[string]      `query:"issueId"`
	Limit     int              `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor    Opt[string]      `query:"cursor" rules:"max=1024"`
}

// DraftPage is a page of drafts. NextCursor is absent on the last one.
type DraftPage struct {
	Drafts     []Draft `json:"drafts"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListDrafts lists the drafts that the caller may see, with a lane token those of
// its session.
var ListDrafts = NewQuery[ListDraftsIn, DraftPage]("ListDrafts", "List drafts", Needs{Read, "issues"}, listDrafts, OneMoment, ForLanes)

func listDrafts(v *View, in *ListDraftsIn) (Reply, error) {
	var matches []storage.Match
	about := func(what byte, id string) {
		if _, ok := storage.ParseID(id); !ok {
			matches = append(matches, storage.Nothing())
			return
		}
		matches = append(matches, storage.Equal(draftByAbout, aboutKey(nil, what, id)))
	}
	if in.IssueID.Set {
		about(aboutIssue, in.IssueID.Value)
	}
	if in.SessionID.Set {
		about(aboutSession, in.SessionID.Value)
	}
	if lane := v.Caller.Lane; lane != nil {
		about(aboutSession, lane.Session.String())
	}
	if in.Status.Set {
		matches = append(matches, storage.Equal(draftByStatus, storage.Key(nil).Byte(in.Status.Value.rank())))
	}
	fingerprint := in.fingerprint(v.Workspace())
	var after []byte
	if in.Cursor.Set {
		var err error
		if after, err = parseCursor(in.Cursor.Value, fingerprint); err != nil {
			return Reply{}, err
		}
	}
	p := draftPage{v: v, limit: cmp.Or(in.Limit, 50), seen: map[storage.ID]bool{}}
	body, err := p.build(matches, after, fingerprint)
	return Reply{Body: body}, err
}

// fingerprint binds a cursor to its query.
func (in *ListDraftsIn) fingerprint(workspace storage.ID) uint64 {
	h := xxhash.New()
	_, _ = h.Write(workspace[:])
	_, _ = h.WriteString("drafts")
	for _, filter := range []Opt[string]{in.IssueID, in.SessionID, {Set: in.Status.Set, Value: string(in.Status.Value)}} {
		if filter.Set {
			_, _ = h.Write([]byte{1})
		}
		_, _ = h.WriteString(filter.Value)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// draftPage builds a page of drafts from their stored JSON.
type draftPage struct {
	v      *View
	limit  int
	seen   map[storage.ID]bool // issues, by whether the caller sees them
	buf    []byte
	count  int
	looked int
}

func (p *draftPage) build(matches []storage.Match, after []byte, fingerprint uint64) ([]byte, error) {
	p.buf = p.v.Buf[:0]
	p.buf = append(p.buf, `{"drafts":[`...)
	var last [storage.ListedKeyLen]byte
	more := false
	resume, err := drafts.ListWithin(p.v, matches, after, maxLeaps, func(pk []byte, rec storage.Record) (bool, error) {
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
		if seen {
			if p.count > 0 {
				p.buf = append(p.buf, ',')
			}
			p.count++
			p.buf = append(append(p.buf, publicPart(rec.JSON())...), '}')
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
	return (&issuePage{fingerprint: fingerprint}).end(p.buf, more, last[:]), nil
}

// sees is seesDraft, which asks once for each issue. With a lane token the answer is
// the draft's own, and there is one issue.
func (p *draftPage) sees(rec storage.Record) (bool, error) {
	if rec.Flags()&draftOnIssue == 0 || p.v.Caller.Lane != nil {
		return p.v.seesDraft(rec)
	}
	issue := issueIn(rec)
	seen, known := p.seen[issue]
	if known {
		return seen, nil
	}
	seen, err := p.v.seesDraft(rec)
	p.seen[issue] = seen
	return seen, err
}
