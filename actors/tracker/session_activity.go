package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ActivityType is the type of an activity.
type ActivityType string

// The types of activities.
const (
	ActivityThought     ActivityType = "thought"
	ActivityResponse    ActivityType = "response"
	ActivityError       ActivityType = "error"
	ActivityElicitation ActivityType = "elicitation"
	ActivityAction      ActivityType = "action"
	ActivityStatus      ActivityType = "status"
	ActivityArtifact    ActivityType = "artifact"
)

// EnumValues implements Enumerated.
func (ActivityType) EnumValues() []string {
	return enumTexts([]ActivityType{ActivityThought, ActivityResponse, ActivityError, ActivityElicitation, ActivityAction, ActivityStatus, ActivityArtifact})
}

// Activity is an entry of a session's log.
type Activity struct {
	ID         string          `json:"id"`
	SessionID  SessionID       `json:"sessionId"`
	CreatedAt  Timestamp       `json:"createdAt"`
	Message    string          `json:"message"`
	ActorID    *string         `json:"actorId"`
	ParentID   *string         `json:"parentId"`
	StartedAt  *Timestamp      `json:"startedAt"`
	EndedAt    *Timestamp      `json:"endedAt"`
	Type       ActivityType    `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	DurationMs *float64        `json:"durationMs"`
}

const (
	// maxActivities is the number of activities that a session keeps; older ones are
	// removed.
	maxActivities = 10_000
	// shownActivities is the number of activities in the answer to a poll.
	shownActivities = 500
	// maxPayload limits an activity's payload in bytes.
	maxPayload = 64 << 10
)

// ActivityFields are the fields of a new activity.
type ActivityFields struct {
	Type       ActivityType    `json:"type" default:"action"`
	Message    Opt[string]     `json:"message" rules:"max=32768"`
	Payload    json.RawMessage `json:"payload"`
	ParentID   Opt[string]     `json:"parentId" rules:"nullable,min=1,max=255"`
	StartedAt  Opt[string]     `json:"startedAt" rules:"nullable,datetime"`
	EndedAt    Opt[string]     `json:"endedAt" rules:"nullable,datetime"`
	DurationMs Opt[float64]    `json:"durationMs" rules:"nullable,min=0"`
}

// activityKey returns the key of a session's activity: session, then sequence.
func activityKey(session storage.ID, sequence uint64) storage.Key {
	return storage.Key(make([]byte, 0, 24)).ID(session).U64(sequence)
}

// add appends an activity to the session's log.
func (c *sessionChange) add(a *Activity) error {
	tx, in := c.tx, &c.s.Inner
	id, err := tx.NewID()
	if err != nil {
		return err
	}
	a.ID, a.SessionID, a.CreatedAt = id.String(), c.s.ID, At(tx.now)
	if a.ActorID == nil && tx.Caller.Type != ActorSystem {
		actor := tx.Caller.ID
		a.ActorID = &actor
	}
	body, err := json.MarshalWithOption(a, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode an activity: %w", err)
	}
	in.Last++
	if in.First == 0 {
		in.First = in.Last
	}
	session := c.s.id()
	if err := tx.Writer().AddValue(activityTable, activityKey(session, in.Last), body); err != nil {
		return err
	}
	if err := tx.trimLog(session, in); err != nil {
		return err
	}
	in.LastActivity, in.LastType = a.ID, a.Type
	if a.Type == ActivityElicitation {
		in.Answered = false
	}
	c.progress = true
	return nil
}

// trimLog removes the oldest activities of a session that has more than maxActivities.
func (tx *Tx) trimLog(session storage.ID, in *sessionInner) error {
	for ; in.Last-in.First >= maxActivities; in.First++ {
		if err := tx.Writer().DeleteValue(activityTable, activityKey(session, in.First)); err != nil {
			return err
		}
	}
	return nil
}

// logActivity appends an activity of the service.
func (c *sessionChange) logActivity(kind ActivityType, message string) error {
	return c.add(&Activity{Type: kind, Message: message})
}

// activity returns the activity with these fields.
func (f *ActivityFields) activity() *Activity {
	a := &Activity{
		Type: f.Type, Message: f.Message.Value, Payload: f.Payload, ParentID: f.ParentID.Ptr(),
		StartedAt: snooze(f.StartedAt.Ptr()), EndedAt: snooze(f.EndedAt.Ptr()), DurationMs: f.DurationMs.Ptr(),
	}
	if a.Type == "" {
		a.Type = ActivityAction
	}
	if a.DurationMs == nil && a.StartedAt != nil && a.EndedAt != nil {
		// A time.Duration ends at 292 years. An agent's clock may have been set back meanwhile.
		took := float64(max(0, a.EndedAt.Time().UnixMilli()-a.StartedAt.Time().UnixMilli()))
		a.DurationMs = &took
	}
	return a
}

// validateAt checks what the tags can't express. at is the activity's path in the body,
// with a dot at its end.
func (f *ActivityFields) validateAt(at string, faults *Faults) {
	if !f.Message.Set && !faults.Has(at+"message") {
		faults.Add(at+"message", "Is required.")
	}
	if len(f.Payload) > maxPayload {
		faults.Add(at+"payload", fmt.Sprintf("Must be at most %d bytes of JSON.", maxPayload))
	}
	for _, t := range []struct {
		name string
		text *string
	}{{"startedAt", f.StartedAt.Ptr()}, {"endedAt", f.EndedAt.Ptr()}} {
		if t.text != nil && !faults.Has(at+t.name) && snooze(t.text) == nil {
			faults.Add(at+t.name, "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
		}
	}
}
