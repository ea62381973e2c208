package tracker

import (
	"slices"

	"switchyard/storage"
)

// A claim that waits is woken when its caller may see more sessions of the claim queue than
// before: the issue of a session has got another team or other grants, or the caller another role
// or other teams. The second kind of change is rare, and wakes claims of every agent.

// maxSeenAnew is the number of an issue's sessions that a change looks at to wake the claims of
// their agents and providers. For more sessions it wakes claims of every agent.
const maxSeenAnew = 30

// wakeForIssue wakes claims that wait for the sessions of an issue in the claim queue: other
// callers may see the issue from now on.
func (tx *Tx) wakeForIssue(issue storage.ID) error {
	active, err := tx.activeSessions(issue)
	if err != nil {
		return err
	}
	if len(active) > maxSeenAnew {
		tx.wakeClaimers()
		return nil
	}
	var woken []Topic
	for _, pk := range active {
		row, err := sessions.Get(tx, pk)
		if err != nil {
			return err
		}
		if row == nil || !row.Value.queued() {
			continue
		}
		// An agent works on one session of an issue at a time.
		s := &row.Value
		if topic := claimTopic(s.AgentID, s.Provider); !slices.Contains(woken, topic) {
			woken = append(woken, topic)
			tx.wakeClaimer(s.AgentID, s.Provider)
		}
	}
	return nil
}
