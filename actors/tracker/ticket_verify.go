package tracker

import (
	"switchyard/storage"
)

// checkTickets checks that the issue of every ticket exists, its number of messages,
// and that the ticket of every message exists.
func checkTickets(v *storage.View, report reporter) error {
	err := tickets.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := tickets.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		t := &row.Value
		if string(t.OrganizationID) != v.Workspace().String() {
			report(tickets.Name, pk, "says it belongs to workspace %s", t.OrganizationID)
		}
		if t.Status.rank() == 0xff {
			report(tickets.Name, pk, "has status %q", t.Status)
		}
		if t.IssueID != nil {
			id, _ := storage.ParseID(*t.IssueID)
			there, err := v.Has(issueTable, issueKey(id))
			if err != nil {
				return false, err
			}
			if !there {
				report(tickets.Name, pk, "its issue %s is not there", *t.IssueID)
			}
		}
		id, _ := storage.ParseID(t.ID)
		var n int64
		if err := v.Rows(ticketMessageTable, id[:], nil, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			return false, err
		}
		if n != t.MessageCount {
			report(tickets.Name, pk, "says %d messages, there are %d", t.MessageCount, n)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	var ticket storage.ID // the last ticket that was looked up
	there := false
	return v.Rows(ticketMessageTable, nil, nil, func(pk, _ []byte) (bool, error) {
		if len(pk) != 2*len(ticket) {
			return true, nil // the table's own check reports it
		}
		if id := storage.ID(pk[:len(ticket)]); id != ticket {
			ticket = id
			if there, err = v.Has(ticketTable, storage.Key(nil).DescID(id)); err != nil {
				return false, err
			}
		}
		if !there {
			report(ticketMessages.Name, pk, "there is no such ticket")
		}
		return true, nil
	})
}
