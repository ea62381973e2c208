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
var ListMembers = NewQuery[PageIn, MemberList]("ListMembers", "List members", Needs{Level: Read}, listMembers, FromSnapshot)

func listMembers(v *View, in *PageIn) (Reply, error) {
	return listByAge(v, in, "members", memberByAge, &members)
}

// listByAge lists the records of a table whose primary keys are not in the order of
// creation, by an index of the time of creation.
func listByAge[T any](v *View, in *PageIn, name string, index storage.TableID, table *storage.Table[T]) (Reply, error) {
	after, err := parseCursorKey(in.Cursor, index, v.Workspace())
	if err != nil {
		return Reply{}, err
	}
	if len(after) > 0 {
		after = append(after, 0) // the first key after it
	}
	p := newPage(v.Buf, name, in.Limit)
	err = v.Rows(index, nil, after, func(fields, _ []byte) (bool, error) {
		more := false
		there, err := table.Record(v, fields[8:], func(rec storage.Record) error {
			more = p.add(fields, rec.JSON())
			return nil
		})
		if err == nil && !there {
			err = fmt.Errorf("%w: an entry by age names a %s that is not there", storage.ErrFormat, table.Name)
		}
		return more, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list %s: %w", name, err)
	}
	return p.reply(index, v.Workspace()), nil
}
