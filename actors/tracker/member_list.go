package tracker

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
