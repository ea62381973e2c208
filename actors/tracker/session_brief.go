package tracker

import (
	"fmt"

	"switchyard/storage"
)

// A session's instructions have a row of their own: they may be long and never change,
// while the session is written with every heartbeat.

func (tx *Tx) setBrief(session storage.ID, instructions *string) error {
	if instructions == nil {
		return nil
	}
	return tx.Writer().AddValue(sessionBriefTable, storage.Key(nil).ID(session), []byte(*instructions))
}

// brief returns the instructions of a session, or nil.
func (v *View) brief(session storage.ID) (*string, error) {
	value, err := v.Value(sessionBriefTable, storage.Key(nil).ID(session), nil)
	if err != nil {
		return nil, fmt.Errorf("read a session's instructions: %w", err)
	}
	if value == nil {
		return nil, nil
	}
	text := string(value)
	return &text, nil
}
