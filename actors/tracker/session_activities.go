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
	after, err := parseCursorKey(in.Cursor, activityTable, session)
	if err != nil {
		return Reply{}, err
	}
	err = v.sessionRecord(in.ID, func(rec storage.Record) error {
		log, err := logOf(rec)
		if err != nil {
			return err
		}
		from := log.First
		if len(after) == 8 {
			from = max(from, binary.BigEndian.Uint64(after)+1)
		}
		p := newPage(v.Buf, "activities", cmp.Or(in.Limit, 50))
		if log.Last > 0 {
			err = v.eachActivity(session, from, log.Last, func(n uint64, body []byte) bool {
				return p.add(storage.Key(nil).U64(n), body)
			})
		}
		reply = p.reply(activityTable, session)
		return err
	})
	return reply, err
}
