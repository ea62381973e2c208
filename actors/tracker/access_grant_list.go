package tracker

import (
	"fmt"

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

// ListAccessGrants lists the grants of an issue, in the order of their actors' ids. The
// list of an issue that is not restricted is empty.
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
	err = accessGrants.Scan(v, issueKey(id), nil, func(pk []byte, rec storage.Record) (bool, error) {
		return p.add(pk, rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list an issue's grants: %w", err)
	}
	return p.reply(), nil
}
