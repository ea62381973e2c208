package tracker

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// transferredAttempt is an attempt before a session's last one, which the session's state
// has.
type transferredAttempt struct {
	SessionID SessionID `json:"sessionId"`
	attemptRecord
}

var transferAttempts = transferKind{
	name: "attempt", tables: []storage.TableID{attemptTable},
	places: placesOf(attemptTable, byClaimedAt),
	line: func(v *View, b, key []byte) ([]byte, error) {
		value, err := v.Value(attemptTable, key, nil)
		if err != nil || value == nil || len(key) != 24 {
			return nil, goneFrom("an attempt", err)
		}
		row, err := sessions.Get(v, sessionKey(storage.ID(key[:16])))
		if err != nil || row == nil {
			return nil, goneFrom("an attempt's session", err)
		}
		var a attemptRecord
		if err := json.Unmarshal(value, &a); err != nil {
			return nil, fmt.Errorf("read an attempt: %w", err)
		}
		return appendJSON(b, &transferredAttempt{row.Value.ID, *a.renumbered(row.Value.Inner.First)})
	},
}

// byClaimedAt is madeBy for attempts. One that began by a clock behind the id of its session comes
// after the session all the same.
func byClaimedAt(key, value []byte) (storage.ID, error) {
	session, err := byOldestFirst(key, nil)
	if err != nil {
		return session, err
	}
	at, err := byTimeIn(value, "claimedAt")
	if bytes.Compare(at[:], session[:]) < 0 {
		at = session
	}
	return at, err
}

// renumbered returns an attempt for a session whose first kept activity gets the number 1.
func (a *attemptRecord) renumbered(first uint64) *attemptRecord {
	if a == nil || first <= 1 {
		return a
	}
	of := *a
	of.Before -= min(of.Before, first-1)
	of.Last -= min(of.Last, first-1)
	return &of
}

// transferredCheckpoint is the JSON that a session's agents have stored.
type transferredCheckpoint struct {
	SessionID  SessionID       `json:"sessionId"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

var transferCheckpoints = sessionRowKind("checkpoint", checkpointTable, func(b []byte, id SessionID, value []byte) ([]byte, error) {
	return appendJSON(b, transferredCheckpoint{id, value})
})

// sessionRowKind declares the lines of plain rows with a session's id as their key.
func sessionRowKind(name string, table storage.TableID, show func(b []byte, id SessionID, value []byte) ([]byte, error)) transferKind {
	return rowKind(name, table, byOldestFirst, func(b, key, value []byte) ([]byte, error) {
		if len(key) != len(storage.ID{}) {
			return nil, fmt.Errorf("%w: %s of %d bytes of key", storage.ErrFormat, name, len(key))
		}
		return show(b, SessionID(storage.ID(key).String()), value)
	})
}

// transferredUsage is usage as an agent has reported it.
type transferredUsage struct {
	ID        string    `json:"id"`
	At        Timestamp `json:"at"`
	SessionID SessionID `json:"sessionId"`
	IssueID   IssueID   `json:"issueId"`
	AgentID   string    `json:"agentId"`
	ProjectID *string   `json:"projectId"`
	Model     *string   `json:"model"`
	Usage
}

var transferUsage = rowKind("usage", usageEntryTable, byEntryID, func(b, key, value []byte) ([]byte, error) {
	id, err := byEntryID(key, nil)
	if err != nil {
		return nil, err
	}
	o, u, err := parseUsageEntry(value)
	if err != nil {
		return nil, err
	}
	return appendJSON(b, &transferredUsage{
		ID: id.String(), At: At(timeOfMillis(key)), SessionID: SessionID(o.session.String()), IssueID: IssueID(o.issue.String()),
		AgentID: o.agent, ProjectID: textOrNil(o.project), Model: textOrNil(o.model), Usage: u,
	})
})

// byEntryID is madeBy for the keys of reported usage.
func byEntryID(key, _ []byte) (storage.ID, error) {
	if len(key) != 8+16 {
		return storage.ID{}, fmt.Errorf("%w: usage entry with %d bytes of key", storage.ErrFormat, len(key))
	}
	return storage.ID(key[8:]), nil
}
