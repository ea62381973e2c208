package tracker

import "switchyard/storage"

// ListSessionChildrenIn asks for a page of a session's children, newest first.
type ListSessionChildrenIn struct {
	ID      SessionID          `path:"id"`
	Status  Opt[SessionStatus] `query:"status"`
	Limit   int                `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor  Opt[string]        `query:"cursor"`
	Summary string             `query:"summary" enum:"0,1"`
}

// ListSessionChildren lists the sessions that a session has spawned. With a lane token
// it lists the children of the token's own session, although the token gives no other
// access to them: their parent must learn how they ended (Decision 36).
var ListSessionChildren = NewQuery[ListSessionChildrenIn, SessionPage]("ListSessionChildren", "List a session's children", Needs{Read, "sessions"}, listSessionChildren, FromSnapshot, ForLanes, Refuses(CodeConflict))

func listSessionChildren(v *View, in *ListSessionChildrenIn) (Reply, error) {
	if err := v.sessionRecord(in.ID, func(storage.Record) error { return nil }); err != nil {
		return Reply{}, err
	}
	parent, _ := storage.ParseID(in.ID)
	of := func(ended byte) storage.Match {
		return storage.Equal(sessionByParent, storage.Key(nil).ID(parent).Byte(ended))
	}
	var matches []storage.Match
	switch {
	case !in.Status.Set:
		matches = append(matches, storage.AnyOf(of(0), of(1)))
	case in.Status.Value.Ended():
		matches = append(matches, of(1), storage.Equal(sessionByStatus, storage.Key(nil).Byte(in.Status.Value.rank())))
	default:
		matches = append(matches, of(0), storage.Equal(sessionByStatus, storage.Key(nil).Byte(in.Status.Value.rank())))
	}
	query := listQuery(parent, "children", Opt[string]{Set: in.Status.Set, Value: string(in.Status.Value)})
	p := sessionPage{limit: in.Limit, cursor: in.Cursor, query: query, summary: in.Summary == "1", own: v.Caller.Lane != nil}
	return p.build(v, matches)
}
