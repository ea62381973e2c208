package tracker

import (
	"cmp"
	"fmt"
	"slices"

	"switchyard/storage"
)

// ListRelationsIn asks for relations of an issue.
type ListRelationsIn struct {
	ID string `path:"id"`
	PagedIn
}

// RelationPage is a page of relations. NextCursor is absent on the last one.
type RelationPage struct {
	Relations  []Relation `json:"relations"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// ListRelations lists the relations of an issue to issues that the caller may see, newest
// first.
var ListRelations = NewQuery[ListRelationsIn, RelationPage]("ListRelations", "List an issue's relations", Needs{Read, "issues"}, listRelations, FromSnapshot)

func listRelations(v *View, in *ListRelationsIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	p, err := newPage(v.Buf, pageSpec{name: "relations", limit: cmp.Or(in.Limit, 50), cursor: sent(in.Cursor), query: listQuery(id, "relations")})
	if err != nil {
		return Reply{}, err
	}
	all, err := v.relationsOf(id)
	if err != nil {
		return Reply{}, err
	}
	for _, r := range all {
		if p.after != nil && r.ID >= string(p.after) {
			continue
		}
		other, err := v.relatedIssue(r.otherEnd(id))
		if err != nil {
			return Reply{}, err
		}
		if other == nil {
			continue
		}
		shown, err := jsonReply(Done, r.seenFrom(id, other))
		if err != nil {
			return Reply{}, err
		}
		if !p.add([]byte(r.ID), shown.Body) {
			break
		}
	}
	return p.reply(), nil
}

// otherEnd returns the issue at the other end of a relation.
func (r *relationRecord) otherEnd(issue storage.ID) storage.ID {
	_, other := r.edge().seenFrom(issue)
	return other
}

// relationsOf returns the relations of an issue, newest first.
func (v *View) relationsOf(issue storage.ID) ([]*relationRecord, error) {
	edges, err := v.edgesOf(issue)
	if err != nil {
		return nil, err
	}
	all := make([]*relationRecord, 0, len(edges))
	for _, e := range edges {
		row, err := relations.Get(v, e.key(nil))
		if err == nil && row == nil {
			err = fmt.Errorf("issue %s: an index names a relation that is not there", issue)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &row.Value)
	}
	slices.SortFunc(all, func(a, b *relationRecord) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}
