package tracker

import (
	"fmt"

	"switchyard/storage"
)

// A session's instructions lie beside it: they may be long, and never change, while
// the session is written again with every sign of life.

func (tx *Tx) setBrief(session storage.ID, instructions *string) error {
	if instructions == nil {
		return nil
	}
	return tx.Writer().AddValue(sessionBriefTable, storage.Key(nil).ID(session), []byte(*instructions))
}

// brief gives the instructions of a session; nil when it has none.
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
