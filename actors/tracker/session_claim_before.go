package tracker

import (
	json "github.com/goccy/go-json"
)

// maxClaimed limits the answer to a claim, in bytes: a claim that has reached it takes no
// further session, and shows no further results of predecessors.
const maxClaimed = 4 << 20

// claimedBefore is what a claimer is told of the time before its claim (Decision 65).
type claimedBefore struct {
	// Attempt is one more than the number of attempts before it that count.
	Attempt int `json:"attempt"`
	// Checkpoint is the last one that was stored; null for none.
	Checkpoint json.RawMessage `json:"checkpoint"`
	// LastAttempt is the attempt before this one, whether it counts or not; null for none.
	LastAttempt *SessionAttempt `json:"lastAttempt"`
	// Predecessors are the sessions that this one was queued after.
	Predecessors []SessionPredecessor `json:"predecessors"`
	// WokenBy is what ended the wait of the last attempt, as far as the claimer may see it; empty
	// if there was none.
	WokenBy []WokenBy `json:"wokenBy"`
}

// SessionPredecessor is a session that another one was queued after, with its result.
type SessionPredecessor struct {
	SessionID        SessionID       `json:"sessionId"`
	IssueID          IssueID         `json:"issueId"`
	Status           SessionStatus   `json:"status"`
	Result           *string         `json:"result"`
	StructuredResult json.RawMessage `json:"structuredResult"`
}

// before returns what the claimer is told of the time before the claim, which has not
// changed the session yet. Results of predecessors take up to room bytes.
func (c *sessionChange) before(room int) (*claimedBefore, error) {
	tx, in := c.tx, &c.s.Inner
	woken, err := tx.seenWaking(in.WokenBy)
	if err != nil {
		return nil, err
	}
	out := &claimedBefore{Attempt: in.Attempts + 1, Predecessors: []SessionPredecessor{}, WokenBy: woken}
	if in.Attempt != nil || in.QueuedAt != "" { // a claimer or the holder of a registered session may have stored one
		if out.Checkpoint, err = tx.checkpoint(c.s.id()); err != nil {
			return nil, err
		}
	}
	if in.Attempt != nil {
		if out.LastAttempt, err = tx.shownAttempt(c.s.id(), in.Attempt, in.Last); err != nil {
			return nil, err
		}
	}
	for _, id := range in.Predecessors {
		row, err := tx.session(id)
		if err != nil {
			return nil, err
		}
		if row == nil {
			continue // the claimer may not see it
		}
		p := &row.Value
		shown := SessionPredecessor{SessionID: p.ID, IssueID: p.IssueID, Status: p.Status}
		if p.Result != nil && len(*p.Result) <= room {
			shown.Result, room = p.Result, room-len(*p.Result)
		}
		if len(p.StructuredResult) <= room {
			shown.StructuredResult, room = p.StructuredResult, room-len(p.StructuredResult)
		}
		out.Predecessors = append(out.Predecessors, shown)
	}
	return out, nil
}
