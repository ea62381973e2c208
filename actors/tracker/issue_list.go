package tracker

import (
	"cmp"
	"errors"
	"fmt"

	"switchyard/storage"
)

// ListIssuesIn asks for a page of issues, newest first.
type ListIssuesIn struct {
	Limit  int         `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor Opt[string] `query:"cursor"`
	IssueFilter
}

// IssuePage is a page of issues. NextCursor is absent on the last one. A page may
// hold fewer issues than its limit, or none, and still not be the last.
type IssuePage struct {
	Issues     []Issue `json:"issues"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListIssues lists the issues that satisfy every filter (Decision 17).
var ListIssues = NewQuery[ListIssuesIn, IssuePage]("ListIssues", "List issues", Needs{Read, "issues"}, listIssues, Filters, TakesATurn)

func listIssues(v *View, in *ListIssuesIn) (Reply, error) {
	return v.listIssues(in, everyStatus, "issues")
}

// maxStale is how often a list takes another moment because the sets have moved on.
const maxStale = 8

// listIssues answers a list of issues in any of the given statuses.
func (v *View) listIssues(in *ListIssuesIn, within statusSet, kind string) (Reply, error) {
	first, err := newPage(v.Buf, pageSpec{
		name: "issues", limit: cmp.Or(in.Limit, 50), cursor: in.Cursor, query: in.query(v.Workspace(), kind), keyLen: storage.ListedKeyLen,
	})
	if err != nil {
		return Reply{}, err
	}
	for try := 1; ; try++ {
		p := issuePage{page: first, visibility: visibility{v: v}}
		reply, stale, err := v.listOnce(in, within, &p, try < maxStale)
		if !stale {
			return reply, err
		}
	}
}

// listOnce answers a list as of one moment. stale says that the sets are of a later
// moment than that.
func (v *View) listOnce(in *ListIssuesIn, within statusSet, p *issuePage, withSets bool) (_ Reply, stale bool, err error) {
	release := v.Settle()
	defer func() { err = errors.Join(err, release()) }()
	matches, empty, err := v.matches(&in.IssueFilter, within)
	if err != nil {
		return Reply{}, false, err
	}
	if empty {
		return p.reply(), false, nil
	}
	list := issueList{matches: matches}
	if withSets {
		if list.selected, stale, err = v.selects(&in.IssueFilter, matches, p); err != nil || stale {
			return Reply{}, stale, err
		}
	}
	rest := residualFilter{v: v, f: &in.IssueFilter, now: At(v.Now()), visibility: &p.visibility}
	rest.readied = list.selected != nil && in.readyBySets()
	p.keeps = rest.keeps
	if in.Search.Set {
		if rest.search, err = v.search(in.Search.Value); err != nil {
			return Reply{}, false, errors.Join(fmt.Errorf("search: %w", err), list.close())
		}
		if s := rest.search; s != nil && s.docs != nil {
			list.docs = s.docs
		}
	}
	reply, err := p.build(v, list)
	return reply, false, err
}
