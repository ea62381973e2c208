package tracker

import (
	"fmt"

	"switchyard/storage"
)

// MemberList is the answer to ListMembers.
type MemberList struct {
	Members    []Member `json:"members"`
	NextCursor string   `json:"nextCursor,omitempty"`
}

// ListMembers lists the workspace's members, newest first.
var ListMembers = NewQuery[PageIn, MemberList]("ListMembers", "List members", Needs{Level: Read}, listMembers, OneMoment)

func listMembers(v *View, in *PageIn) (Reply, error) {
	after, err := parsePlace(in.Cursor, memberByAge, v.Workspace())
	if err != nil {
		return Reply{}, err
	}
	if len(after) > 0 {
		after = append(after, 0) // the first key behind it
	}
	p := newPage(v.Buf, "members", in.Limit)
	err = v.Rows(memberByAge, nil, after, func(fields, _ []byte) (bool, error) {
		more := false
		there, err := members.Record(v, fields[8:], func(rec storage.Record) error {
			more = p.add(fields, rec.JSON())
			return nil
		})
		if err == nil && !there {
			err = fmt.Errorf("%w: an index entry names a member that is not there", storage.ErrFormat)
		}
		return more, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list members: %w", err)
	}
	return p.reply(memberByAge, v.Workspace()), nil
}
