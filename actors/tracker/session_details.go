package tracker

import (
	"bytes"

	"switchyard/storage"
)

// SessionDetails are the fields of a session that GET, lists, claims and events show
// and that polls and spawned sessions don't. Their JSON is stored behind that of
// AgentSession.
type SessionDetails struct {
	// NotBefore is the time before which the session is not claimed (Decision 59).
	NotBefore *Timestamp `json:"notBefore"`
	// WhenReady is set if the session waits until its issue is not blocked (Decision 59).
	WhenReady bool `json:"whenReady"`
	// ConcurrencyKeys are the keys of which the session holds a place while it runs
	// (Decision 63).
	ConcurrencyKeys []string `json:"concurrencyKeys"`
	// Retry says how often the session is tried; null for the defaults (Decision 62).
	Retry *RetryPolicy `json:"retry"`
	// FailureReason is the reason of the last failure, as its report named it, or
	// "budget" for a session that the service has ended for a budget.
	FailureReason *string `json:"failureReason"`
	// DeadLetteredAt is the time when the session failed with its attempts used up.
	DeadLetteredAt *Timestamp `json:"deadLetteredAt"`
}

// polledPart returns the part of a session's public JSON that polls show: the fields up
// to lastStateHash, without the closing brace. Every stored session has a hash. No text
// from clients behind it can look like its field, since quotes in texts are escaped.
func polledPart(public []byte) []byte {
	const field = `,"lastStateHash":"`
	at := bytes.LastIndex(public, []byte(field))
	if at < 0 {
		return bytes.TrimSuffix(public, []byte("}"))
	}
	at += len(field)
	if end := bytes.IndexByte(public[at:], '"'); end >= 0 {
		return public[:at+end+1]
	}
	return public
}

// isDeadLetter reports whether a stored session has failed with its attempts used up.
func isDeadLetter(rec storage.Record) bool {
	public := publicPart(rec.JSON())
	return bytes.Contains(public[len(polledPart(public)):], []byte(`,"deadLetteredAt":"`))
}
