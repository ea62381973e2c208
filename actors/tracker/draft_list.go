package tracker

import (
	"cmp"

	"switchyard/storage"
)

// ListDraftsIn asks for a page of drafts, newest first.
type ListDraftsIn struct {
	Status    Opt[DraftStatus] `query:"status"`
	SessionID Opt[string]      `query:"sessionId"`
	IssueID   Opt[string]      `query:"issueId"`
	Limit     int              `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor    Opt[string]      `query:"cursor" rules:"max=1024"`
}

// DraftPage is a page of drafts. NextCursor is absent on the last page.
type DraftPage struct {
	Drafts     []Draft `json:"drafts"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListDrafts lists the drafts that the caller may see; with a lane token, those of its
// session.
var ListDrafts = NewQuery[ListDraftsIn, DraftPage]("ListDrafts", "List drafts", Needs{Read, "issues"}, listDrafts, FromSnapshot, ForLanes)

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
	p, err := newPage(v.Buf, pageSpec{
		name: "drafts", limit: cmp.Or(in.Limit, 50), cursor: in.Cursor, keyLen: storage.ListedKeyLen,
		query: listQuery(v.Workspace(), "drafts", in.IssueID, in.SessionID, Opt[string]{Set: in.Status.Set, Value: string(in.Status.Value)}),
	})
	if err != nil {
		return Reply{}, err
	}
	seen := accessCache{}
	err = p.fill(
		func(fn eachRecord) ([]byte, error) {
			leaps := maxLeaps
			return drafts.ListWithin(v, matches, p.after, &leaps, fn)
		},
		func(_ []byte, rec storage.Record) (bool, error) {
			// All drafts of a lane token's session have the same issue, and canViewDraft
			// decides by the session.
			if rec.Flags()&draftOnIssue == 0 || v.Caller.Lane != nil {
				return v.canViewDraft(rec)
			}
			return seen.byIssue(rec, v.canViewDraft)
		},
		func(b []byte, rec storage.Record) ([]byte, error) {
			return append(append(b, publicPart(rec.JSON())...), '}'), nil
		})
	if err != nil {
		return Reply{}, err
	}
	return p.reply(), nil
}
