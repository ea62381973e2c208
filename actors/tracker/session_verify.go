package tracker

import (
	"encoding/binary"
	"fmt"

	"switchyard/storage"
)

// sessionRows are the plain rows of sessions.
var sessionRows = []storage.RowSpec{
	{ID: activityTable, Name: "activity", Check: checkActivity, Counting: storage.Counted},
	{ID: checkpointTable, Name: "checkpoint", Check: checkSessionRow, Counting: storage.Counted},
	{ID: planTable, Name: "plan", Check: checkSessionRow, Counting: storage.Counted},
	{ID: usageEntryTable, Name: "reported usage", Check: checkUsageEntry, Counting: storage.Counted},
	{ID: usageDayTable, Name: "usage of a day", Check: checkUsageDay, Counting: storage.Counted},
	{ID: usageSumTable, Name: "sum of usage", Check: checkUsageSum, Counting: storage.Counted},
	storage.Counter(waitCountTable, "sessions that wait for conditions"),
	{ID: attemptTable, Name: "attempt", Check: checkAttempt, Counting: storage.Counted},
	storage.Counter(engagedTable, "sessions an agent is at"),
	{ID: suspensionTable, Name: "suspended scope"},    // checkHolds checks them
	{ID: queueCountTable, Name: "count of the queue"}, // checkQueueCounts checks them
	{ID: sessionBriefTable, Name: "session's instructions", Check: checkSessionRow, Counting: storage.Counted},
}

// checkActivity checks that an activity is in the range that its session's record has.
func checkActivity(v *storage.View, fields, value []byte) error {
	if len(fields) != 24 {
		return fmt.Errorf("%w: activity's key of %d bytes", storage.ErrFormat, len(fields))
	}
	row, err := sessions.Get(v, sessionKey(storage.ID(fields[:16])))
	if err != nil {
		return err
	}
	if row == nil {
		return fmt.Errorf("there is no such session")
	}
	in, n := &row.Value.Inner, binary.BigEndian.Uint64(fields[16:])
	if n < in.First || n > in.Last {
		return fmt.Errorf("its session keeps activities %d to %d", in.First, in.Last)
	}
	if n == in.Last && string(storedText(value, "id")) != in.LastActivity {
		return fmt.Errorf("is not the one that its session calls the last")
	}
	return nil
}

// checkSessions checks that every session agrees with its issue, its activities and its
// timers, that no agent holds two sessions of one issue, and the counters of engaged
// sessions.
func checkSessions(v *storage.View, report reporter) error {
	held := map[string]bool{}
	at := map[storage.ID]uint64{}
	counts := queueCounts{}
	err := sessions.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := sessions.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		s := &row.Value
		if string(s.OrganizationID) != v.Workspace().String() || s.Status.rank() == 0xff {
			report(sessions.Name, pk, "says it is %q in workspace %s", s.Status, s.OrganizationID)
		}
		if s.Status.Ended() != (s.Inner.EndedAt != "") {
			report(sessions.Name, pk, "is %s, and ended at %q", s.Status, s.Inner.EndedAt)
		}
		if s.Inner.Lease != nil {
			name := s.AgentID + "\x00" + string(s.IssueID)
			if held[name] || !s.engaged() {
				report(sessions.Name, pk, "is leased while %s, or its agent holds another one of its issue", s.Status)
			}
			held[name] = true
		}
		if s.AgentID != unassigned && s.engaged() {
			at[agentKey(s.AgentID)]++
		}
		counts.count(s)
		if err := checkSessionTimers(v, pk, s, report); err != nil {
			return false, err
		}
		if n := s.Inner.Last; n > 0 {
			for _, n := range []uint64{s.Inner.First, n} {
				there, err := v.Has(activityTable, activityKey(s.id(), n))
				if err != nil {
					return false, err
				}
				if !there {
					report(sessions.Name, pk, "its activity %d is not there", n)
				}
			}
		}
		if err := checkParking(v, pk, s, report); err != nil {
			return false, err
		}
		return true, checkSessionIssue(v, pk, s, report)
	})
	if err != nil {
		return err
	}
	if err := checkQueueCounts(v, counts, report); err != nil {
		return err
	}
	if err := checkHolds(v, report); err != nil {
		return err
	}
	for agent, n := range at {
		counted, err := v.Number(engagedTable, agent[:])
		if err != nil {
			return err
		}
		if counted != n {
			report("sessions an agent is at", agent[:], "says %d, there are %d", counted, n)
		}
	}
	return v.Rows(engagedTable, nil, nil, func(fields, value []byte) (bool, error) {
		if len(fields) == 16 && at[storage.ID(fields)] == 0 && binary.BigEndian.Uint64(value) != 0 {
			report("sessions an agent is at", fields, "says %d, there are none", binary.BigEndian.Uint64(value))
		}
		return true, nil
	})
}

// checkSessionTimers checks that the timers of a session's budget and lease are set.
func checkSessionTimers(v *storage.View, pk []byte, s *sessionRecord, report reporter) error {
	need := s.MaxDurationMinutes != nil && !s.Status.Ended()
	set, err := v.Has(timerTable, timerKey(nil, timerSessionBudget, string(s.ID)))
	if err != nil {
		return err
	}
	if need != set {
		report(sessions.Name, pk, "the timer of its budget is set: %t", set)
	}
	lease := s.Inner.Lease
	if lease == nil {
		return nil
	}
	timer, err := timers.Get(v, timerKey(nil, timerSessionLeases, ""))
	if err != nil {
		return nil // the table's own check reports it
	}
	imported, err := runningImport(v) // puts the timer off
	if err != nil {
		return nil // the table's own check reports it
	}
	late := timer != nil && timer.Value.Due > lease.CheckAt && imported == nil
	if timer == nil || late || lease.CheckAt > lease.ExpiresAt {
		report(sessions.Name, pk, "its lease ends at %s and is looked at %s, by no timer", lease.ExpiresAt, lease.CheckAt)
	}
	return nil
}

func checkSessionIssue(v *storage.View, pk []byte, s *sessionRecord, report reporter) error {
	issue, err := issues.Get(v, issueKey(s.issue()))
	if err != nil {
		return nil // the table's own check reports it
	}
	switch {
	case issue == nil && !s.Inner.Orphan:
		report(sessions.Name, pk, "its issue %s is not there", s.IssueID)
	case s.Inner.Orphan && !s.Status.Ended():
		report(sessions.Name, pk, "is %s, though its issue was deleted", s.Status)
	case issue != nil && !s.Status.Ended() && s.Inner.Rank != issue.Value.Priority.rank():
		// A timer may have to move it.
		moves, err := v.Has(timerTable, timerKey(nil, timerSessionPlaces, s.issue().String()))
		if err != nil {
			return err
		}
		if !moves {
			report(sessions.Name, pk, "its place in the queue is of another priority than its issue's")
		}
	}
	return nil
}
