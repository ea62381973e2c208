package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// OpenToolsIn identifies the session whose tools are to be used.
type OpenToolsIn struct {
	ID SessionID `path:"id"`
}

// ToolScope is the issue that a session's tools work on.
type ToolScope struct {
	IssueID IssueID `json:"issueId"`
	Ended   bool    `json:"ended"`
}

// OpenTools returns the scope of a session's tools to callers that may use them. It is
// called before anything else, and answers for ended sessions, too, since the report
// that ended one may be repeated (Decision 36).
var OpenTools = NewQuery[OpenToolsIn, ToolScope]("OpenTools", "Tell what a session's tools are about", Needs{Write, "sessions"}, openTools, ForLanes)

func openTools(v *View, in *OpenToolsIn) (Reply, error) {
	var scope ToolScope
	err := v.sessionRecord(in.ID, func(rec storage.Record) error {
		scope = ToolScope{IssueID: IssueID(storedText(rec.JSON(), "issueId")), Ended: rec.Flags()&sessionHasEnded != 0}
		return nil
	})
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &scope)
}

// ReadToolScope decodes the answer of OpenTools.
func ReadToolScope(reply Reply) (ToolScope, error) {
	var scope ToolScope
	if err := json.Unmarshal(reply.Body, &scope); err != nil {
		return scope, fmt.Errorf("read the answer of %s: %w", OpenTools.Name, err)
	}
	return scope, nil
}
