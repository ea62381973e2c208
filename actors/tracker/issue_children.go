package tracker

import (
	"cmp"

	"switchyard/storage"
)

// maxChildren is how many children one answer shows at most.
const maxChildren = 1000

// ListIssueChildrenIn asks for the children of an issue. They come all at once
// unless there are more than maxChildren, or a limit is given.
type ListIssueChildrenIn struct {
	ID       string      `path:"id"`
	Archived Opt[bool]   `query:"archived"`
	Limit    int         `query:"limit" rules:"min=1,max=100"`
	Cursor   Opt[string] `query:"cursor"`
}

// ListIssueChildren lists the children of an issue that the caller may see, newest
// first. Archived ones are in a list of their own (Decision 72).
var ListIssueChildren = NewQuery[ListIssueChildrenIn, IssuePage]("ListIssueChildren", "List an issue's children", Needs{Read, "issues"}, listIssueChildren, FromSnapshot)

func listIssueChildren(v *View, in *ListIssueChildrenIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	filter := IssueFilter{ParentID: Some(in.ID), Archived: in.Archived}
	limit := cmp.Or(in.Limit, maxChildren)
	first, err := newPage(v.Buf, pageSpec{
		name: "issues", limit: limit, cursor: in.Cursor, query: filter.query(v.Workspace(), "children"), keyLen: storage.ListedKeyLen,
	})
	if err != nil {
		return Reply{}, err
	}
	if limit == maxChildren {
		first.most = maxWholeBytes
	}
	p := issuePage{
		page:       first,
		visibility: visibility{v: v},
		keeps: func(_ []byte, rec storage.Record) (bool, error) {
			if rec.Flags()&issueArchived != 0 && filter.hidesArchived() {
				return false, nil
			}
			return v.canViewIssue(rec)
		},
	}
	children := []storage.Match{storage.Equal(issueByParent, issueKey(id))}
	if in.Archived.Value {
		children = append(children, storage.Equal(issueByArchived, nil))
	}
	return p.build(v, issueList{matches: children})
}
