package tracker

import (
	"cmp"
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
var ListIssues = NewQuery[ListIssuesIn, IssuePage]("ListIssues", "List issues", Needs{Read, "issues"}, listIssues, OneMoment)

func listIssues(v *View, in *ListIssuesIn) (Reply, error) {
	return v.listIssues(in, everyStatus, "issues")
}

// listIssues answers a list of issues in any of the given statuses.
func (v *View) listIssues(in *ListIssuesIn, within statusSet, kind string) (Reply, error) {
	page := issuePage{limit: cmp.Or(in.Limit, 50), examine: maxExamined, sight: sight{v: v}, fingerprint: in.fingerprint(v.Workspace(), kind)}
	if in.Cursor.Set {
		var err error
		if page.after, err = parseCursor(in.Cursor.Value, page.fingerprint); err != nil {
			return Reply{}, err
		}
	}
	matches, empty, err := v.matches(&in.IssueFilter, within)
	if err != nil {
		return Reply{}, err
	}
	if empty {
		return Reply{Body: append(v.Buf[:0], `{"issues":[]}`...)}, nil
	}
	rest := residue{v: v, f: &in.IssueFilter, now: At(v.Now()), sight: &page.sight}
	page.keeps = rest.keeps
	if in.Search.Set {
		if rest.search, err = v.search(in.Search.Value); err != nil {
			return Reply{}, fmt.Errorf("search: %w", err)
		}
		if s := rest.search; s != nil && s.docs != nil {
			matches = append(matches, storage.FromDocs(issueTable, s.docs))
		}
		if s := rest.search; s != nil && (len(s.wide) > 0 || s.docs == nil) {
			page.examine = maxSearched
		}
	}
	body, err := page.build(v, matches, v.Buf[:0])
	return Reply{Body: body}, err
}
