package tracker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// PollSessionIn asks for a session's state.
type PollSessionIn struct {
	ID SessionID `path:"id"`
	// Since is the id of an activity: only later ones are shown.
	Since Opt[string] `query:"since" rules:"min=1,max=255"`
	// Wait is the number of seconds that the answer may wait for a change.
	Wait int `query:"wait" rules:"min=0,max=30"`

	// known is the lastStateHash at the first look; "" before it.
	known string
	// most bounds the activities in the answer, in bytes; 0 stands for maxWholeBytes.
	most int
}

// LimitActivities bounds the activities in the answer, in bytes. One activity is shown in any
// case, so that a caller that reads part after part gets all of them.
func (in *PollSessionIn) LimitActivities(most int) { in.most = most }

// ActivityLimit returns the bound of the activities in the answer, in bytes.
func (in *PollSessionIn) ActivityLimit() int { return cmp.Or(in.most, maxWholeBytes) }

// WaitFor returns the time that the answer may wait.
func (in *PollSessionIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

// Validate checks what the tags can't express.
func (in *PollSessionIn) Validate(faults *Faults) {
	if in.Since.Set && !faults.Has("query.since") {
		if _, ok := storage.ParseID(in.Since.Value); !ok {
			faults.Add("query.since", "Must be the id of an activity.")
		}
	}
}

// PolledSession is a session with its latest activities, oldest first.
type PolledSession struct {
	AgentSession
	Activities []Activity `json:"activities"`
	// Budget is what the session may still use; null without a budget (Decision 67).
	Budget *LaneBudget `json:"budget"`
}

// PollSession returns a session and its activities, at once or when they change
// (Decision 38).
var PollSession = NewQuery[PollSessionIn, PolledSession]("PollSession", "Poll a session", Needs{Read, "sessions"}, pollSession, ForLanes, MayWait, SinceFirstLook)

func pollSession(v *View, in *PollSessionIn) (Reply, error) {
	reply, alone, err := v.pollOnce(in, false)
	if err == nil && !alone {
		err = v.ofOneMoment(func() (err error) { reply, _, err = v.pollOnce(in, true); return err })
	}
	return reply, err
}

// pollOnce answers a poll, or has it wait. Unless the view is settled it does so only when
// the session's record alone decides; alone is false otherwise. That spares polls of
// sessions that are as they were a snapshot.
func (v *View) pollOnce(in *PollSessionIn, settled bool) (reply Reply, alone bool, err error) {
	alone, err = v.lookAtSession(in.ID, settled, func(rec storage.Record) (alone bool, err error) {
		public := polledPart(publicPart(rec.JSON()))
		log, err := logOf(rec)
		if err != nil {
			return true, err
		}
		if in.Wait > 0 && !v.final && rec.Flags()&sessionHasEnded == 0 && !in.changed(public, log) {
			id, _ := storage.ParseID(in.ID)
			reply.Wait = &Wait{Topic: sessionTopic(id), Until: v.now.Add(in.WaitFor())}
			return true, nil
		}
		if !settled && in.unknown(log) {
			return false, nil
		}
		const before, after, end = `,"activities":[`, `]`, noBudget + `}`
		v.Buf = slices.Grow(v.Buf[:0], len(public)+len(before)+len(after)+len(end))
		v.Buf = append(append(v.Buf, public...), before...)
		if err := v.appendSince(in, log); err != nil {
			return true, err
		}
		v.Buf = append(v.Buf, after...)
		if v.Buf, err = v.appendBudgetOf(v.Buf, rec); err != nil {
			return true, err
		}
		v.Buf = append(v.Buf, '}')
		reply.Body = v.Buf
		return true, nil
	})
	return reply, alone, err
}

// unknown reports whether there are activities that the caller doesn't know.
func (in *PollSessionIn) unknown(log sessionLog) bool {
	return log.Last > 0 && (!in.Since.Set || log.LastActivity > in.Since.Value)
}

// changed reports whether there is an activity after the one that the caller knows, or
// a change since the first look.
func (in *PollSessionIn) changed(public []byte, log sessionLog) bool {
	if in.Since.Set && log.LastActivity > in.Since.Value {
		return true
	}
	hash := lastText(public, "lastStateHash")
	if in.known == "" {
		in.known = string(hash)
		return false
	}
	return in.known != string(hash)
}

// sessionLog is the part of a stored session that concerns its activities.
type sessionLog struct {
	First        uint64 `json:"first"`
	Last         uint64 `json:"last"`
	LastActivity string `json:"lastActivity"`
}

func logOf(rec storage.Record) (log sessionLog, err error) {
	if err := json.Unmarshal(innerPart(rec.JSON()), &log); err != nil {
		return log, fmt.Errorf("read a session: %w", err)
	}
	return log, nil
}

// appendSince appends the newest activities after the one that the caller knows.
func (v *View) appendSince(in *PollSessionIn, log sessionLog) error {
	if !in.unknown(log) {
		return nil
	}
	session, _ := storage.ParseID(in.ID)
	from := log.First
	if log.Last-from >= shownActivities {
		from = log.Last - shownActivities + 1
	}
	if in.Since.Set {
		var err error
		if from, err = v.activityAfter(session, from, log.Last, in.Since.Value); err != nil {
			return err
		}
	}
	start, most := len(v.Buf), in.ActivityLimit()
	for {
		fits := true
		var full error
		err := v.eachActivity(session, from, log.Last, func(_ uint64, body []byte) bool {
			if len(v.Buf) > start {
				v.Buf = append(v.Buf, ',')
			}
			v.Buf = append(v.Buf, body...)
			fits = len(v.Buf)-start < most
			full = v.chargeBuf()
			return fits && full == nil
		})
		if err == nil {
			err = full
		}
		// With Since the next poll continues after this page. Otherwise the newest
		// activities are shown.
		if err != nil || fits || in.Since.Set || from >= log.Last {
			return err
		}
		v.Buf = v.Buf[:start]
		from += (log.Last - from + 1) / 2
	}
}

// activityAfter returns the sequence number, in a range, of a session's first activity
// whose id is greater than id. Ids grow with the sequence numbers.
func (v *View) activityAfter(session storage.ID, from, to uint64, id string) (uint64, error) {
	var failed error
	n := sort.Search(int(to-from+1), func(i int) bool {
		body, err := v.Value(activityTable, activityKey(session, from+uint64(i)), nil)
		if err != nil {
			failed = err
		}
		return string(storedText(body, "id")) > id
	})
	return from + uint64(n), failed
}

// eachActivity calls fn for a session's activities in a range of sequence numbers,
// until fn returns false.
func (v *View) eachActivity(session storage.ID, from, to uint64, fn func(sequence uint64, body []byte) bool) error {
	if from > to {
		return nil
	}
	prefix := storage.Key(nil).ID(session)
	n := from
	err := v.Rows(activityTable, prefix, storage.Key(nil).U64(from), func(_, body []byte) (bool, error) {
		if n > to {
			return false, nil
		}
		more := fn(n, body)
		n++
		return more && n <= to, nil
	})
	if err != nil {
		return fmt.Errorf("read a session's activities: %w", err)
	}
	return nil
}
