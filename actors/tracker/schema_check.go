package tracker

import (
	"encoding/binary"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// checkEvents checks that the event log has no gap and ends at the counter's value.
func checkEvents(v *storage.View, report reporter) error {
	var first, last uint64
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		if len(fields) != 8 {
			report("event", fields, "its key is of %d bytes", len(fields))
			return true, nil
		}
		n := binary.BigEndian.Uint64(fields)
		if first == 0 {
			first = n
		} else if n != last+1 {
			report("event", fields, "there is none between %d and %d", last, n)
		}
		last = n
		checkEvent(v, n, fields, value, report)
		return true, nil
	})
	if err != nil {
		return err
	}
	counter, err := v.Number(eventSequence, make([]byte, 16))
	if err != nil {
		return fmt.Errorf("read the event sequence: %w", err)
	}
	// Expired events are removed from the front, so all events of an empty log have
	// expired.
	if last != 0 && last != counter {
		report("event sequence", nil, "counted to %d, the last event is %d", counter, last)
	}
	return nil
}

func checkEvent(v *storage.View, n uint64, fields, value []byte, report reporter) {
	rec, err := EventRow(v, fields, value)
	if err != nil {
		report("event", fields, "%v", err)
		return
	}
	var e Event
	if err := json.Unmarshal(rec.JSON(), &e); err != nil {
		report("event", fields, "%v", err)
		return
	}
	if e.Sequence != n || string(e.OrganizationID) != v.Workspace().String() {
		report("event", fields, "says it is %d of workspace %s", e.Sequence, e.OrganizationID)
	}
	if e.CreatedAt.Time().IsZero() || !json.Valid(e.Data) {
		report("event", fields, "has no moment or no data")
	}
}

// checkClock checks that no id in the workspace is newer than its clock. Ids made from
// then on are greater than all that exist.
func checkClock(v *storage.View, report reporter) error {
	clock, err := v.Number(clockTable, make([]byte, 16))
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	for _, table := range tables {
		if !table.newestFirst {
			continue
		}
		// Primary keys are inverted ids, so the first row is the newest.
		err := v.Rows(table.id, nil, nil, func(pk, _ []byte) (bool, error) {
			if len(pk) == 16 {
				ms := ^binary.BigEndian.Uint64(pk) >> 16
				if count := uint64(^binary.BigEndian.Uint16(pk[6:]) & 0xfff); ms<<12|count > clock {
					report(table.name, pk, "is newer than the workspace's clock")
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSweeps checks that every kind of expiring row has a timer that will remove it.
func checkSweeps(v *storage.View, report reporter) error {
	for _, s := range []struct {
		of    sweeps
		table storage.TableID
	}{{sweepAnswers, idempotencyByAge}, {sweepEvents, eventTable}, {sweepMemberships, membershipByRemoval}, {sweepReceived, receivedByAge}} {
		if err := checkTimer(v, s.table, s.of.kind(), report); err != nil {
			return err
		}
	}
	return checkTimer(v, pendingTable, timerSyncMembers, report)
}

func checkTimer(v *storage.View, table storage.TableID, kind string, report reporter) error {
	need, err := v.Has(table, nil)
	if err != nil || !need {
		return err
	}
	set, err := v.Has(timerTable, timerKey(nil, kind, ""))
	if err == nil && !set {
		report(timers.Name, timerKey(nil, kind, ""), "is not set, though there is something to do")
	}
	return err
}

// checkHead checks that the workspace's own row agrees with its owner and teams.
func checkHead(v *storage.View, report reporter) error {
	ws, err := workspaces.Get(v, nil)
	if err != nil || ws == nil {
		return nil // not founded, or the table's own check reports it
	}
	if string(ws.Value.ID) != v.Workspace().String() {
		report(workspaces.Name, nil, "says it is %s", ws.Value.ID)
	}
	owners, named := 0, false
	err = members.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		if m, err := members.Decode(rec); err == nil && m.Value.Role == RoleOwner {
			owners++
			named = named || m.Value.UserID == ws.Value.OwnerID
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if owners != 1 || !named {
		report(workspaces.Name, nil, "has %d owners among its members, and %s should be the one", owners, ws.Value.OwnerID)
	}
	found := ws.Value.DefaultTeamID == nil
	err = teams.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		t, err := teams.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		names := ws.Value.DefaultTeamID != nil && *ws.Value.DefaultTeamID == t.Value.ID
		if names != t.Value.IsDefault {
			report(teams.Name, pk, "isDefault is %t, which the workspace's defaultTeamId contradicts", t.Value.IsDefault)
		}
		found = found || names
		return true, nil
	})
	if err == nil && !found {
		report(workspaces.Name, nil, "its default team %s is not there", *ws.Value.DefaultTeamID)
	}
	return err
}

// checkRecordCounts checks the counters of records against the number of rows.
func checkRecordCounts(v *storage.View, report reporter) error {
	for table, b := range quotas {
		var n uint64
		err := v.Rows(table, nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
		if err != nil {
			return err
		}
		subject := storage.ID{15: byte(table)}
		counted, err := v.Number(recordCountTable, subject[:])
		if err != nil {
			return fmt.Errorf("read a record count: %w", err)
		}
		if n != counted {
			report("record count", subject[:], "says %d %s, there are %d", counted, b.what, n)
		}
	}
	return nil
}

// checkTeamMembers checks that the team of every team member exists.
func checkTeamMembers(v *storage.View, report reporter) error {
	return teamMembers.Scan(v, nil, nil, func(pk []byte, _ storage.Record) (bool, error) {
		if len(pk) < 16 {
			return true, nil // the table's own check reports it
		}
		there, err := v.Has(teamTable, storage.Key(nil).DescID(storage.ID(pk[:16])))
		if err == nil && !there {
			report(teamMembers.Name, pk, "there is no such team")
		}
		return true, err
	})
}

// checkTokens checks that every token has a grant, and every grant a token.
func checkTokens(v *storage.View, report reporter) error {
	for _, pair := range [][2]storage.TableID{{tokenTable, grantTable}, {grantTable, tokenTable}} {
		err := v.Rows(pair[0], nil, nil, func(pk, _ []byte) (bool, error) {
			there, err := v.Has(pair[1], pk)
			if err == nil && !there {
				report(tokens.Name, pk, "there is a token without a grant, or a grant without a token")
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMembers checks that the changes noted for the directory agree with the members.
func checkMembers(v *storage.View, report reporter) error {
	return v.Rows(pendingTable, nil, nil, func(fields, value []byte) (bool, error) {
		c, err := parsePending(fields, value)
		if err != nil {
			return true, nil // the row's own check reports it
		}
		there, err := v.Has(memberTable, fields)
		if err == nil && there != c.Present {
			report("pending change of a member", fields, "says present is %t, which the members contradict", c.Present)
		}
		return true, err
	})
}
