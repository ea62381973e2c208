package tracker

import (
	"cmp"
	"encoding/binary"

	"switchyard/storage"
)

// ListActivitiesIn asks for a page of a session's activities, oldest first.
type ListActivitiesIn struct {
	ID     SessionID `path:"id"`
	Limit  int       `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string    `query:"cursor" rules:"max=1024"`
}

// ActivityPage is a page of activities. NextCursor is absent on the last page.
type ActivityPage struct {
	Activities []Activity `json:"activities"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// ListActivities lists a session's activities, oldest first (Decision 38).
var ListActivities = NewQuery[ListActivitiesIn, ActivityPage]("ListActivities", "List a session's activities", Needs{Read, "sessions"}, listActivities, FromSnapshot, ForLanes, Refuses(CodeConflict))

func listActivities(v *View, in *ListActivitiesIn) (reply Reply, err error) {
	session, _ := storage.ParseID(in.ID)
	p, err := newPage(v.Buf, pageSpec{
		name: "activities", limit: cmp.Or(in.Limit, 50), cursor: sent(in.Cursor), query: listQuery(session, "activities"), keyLen: 8,
	})
	if err != nil {
		return Reply{}, err
	}
	err = v.sessionRecord(in.ID, func(rec storage.Record) error {
		log, err := logOf(rec)
		if err != nil {
			return err
		}
		from := log.First
		if p.after != nil {
			from = max(from, binary.BigEndian.Uint64(p.after)+1)
		}
		if log.Last > 0 {
			err = v.eachActivity(session, from, log.Last, func(n uint64, body []byte) bool {
				return p.add(storage.Key(nil).U64(n), body)
			})
		}
		reply = p.reply()
		return err
	})
	return reply, err
}
