package tracker

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"switchyard/storage"
)

// IssueIn identifies an issue.
type IssueIn struct {
	ID string `path:"id"`
}

// AccessGrantList is the answer to ListAccessGrants.
type AccessGrantList struct {
	Permissions []AccessGrant `json:"permissions"`
}

// ListAccessGrants lists the grants of an issue, the newest first. The list of an issue that
// is not restricted is empty.
var ListAccessGrants = NewQuery[IssueIn, AccessGrantList]("ListAccessGrants", "List an issue's access grants", Needs{Read, "issues"}, listAccessGrants, FromSnapshot)

func listAccessGrants(v *View, in *IssueIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	p, err := newPage(v.Buf, pageSpec{name: "permissions"})
	if err != nil {
		return Reply{}, err
	}
	type grant struct {
		id         string // of version 7: the newest has the greatest
		pk, record []byte
	}
	var grants []grant // at most maxGrants
	err = accessGrants.Scan(v, issueKey(id), nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := accessGrants.Decode(rec)
		if err == nil {
			grants = append(grants, grant{row.Value.ID, bytes.Clone(pk), bytes.Clone(rec.JSON())})
		}
		return true, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list an issue's grants: %w", err)
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(b.id, a.id) })
	for _, g := range grants {
		p.add(g.pk, g.record)
	}
	return p.reply(), nil
}
