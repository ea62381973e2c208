package tracker

import (
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// RelatedIssue is an issue with its relations to issues that the caller may see, newest first.
type RelatedIssue struct {
	Issue
	Relations []Relation `json:"relations"`
}

// SessionIssueIn identifies the issue of a session.
type SessionIssueIn struct {
	ID string `path:"id"`
}

// SessionIssue reads the issue that a session works on, for the session's tools (Decision 36).
var SessionIssue = NewQuery[SessionIssueIn, RelatedIssue]("SessionIssue", "Read the issue of a session", Needs{Read, "issues"}, sessionIssue, ForLanes, FromSnapshot)

func sessionIssue(v *View, in *SessionIssueIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	reply, _, err := v.readIssue(id, "", true)
	if err != nil {
		return Reply{}, err
	}
	body := slices.Clone(reply.Body)
	var all []*relationRecord
	if v.Caller.allowsIssues(Read) {
		if all, err = v.relationsOf(id); err != nil {
			return Reply{}, err
		}
	}
	shown := make([]Relation, 0, len(all))
	for _, r := range all {
		other, err := v.relatedIssue(r.otherEnd(id))
		if err != nil {
			return Reply{}, err
		}
		if other != nil {
			shown = append(shown, r.seenFrom(id, other))
		}
	}
	relations, err := json.MarshalWithOption(shown, json.DisableHTMLEscape())
	if err != nil {
		return Reply{}, fmt.Errorf("encode the relations of an issue: %w", err)
	}
	body = append(body[:len(body)-1], `,"relations":`...)
	return Reply{Outcome: Done, Body: append(append(body, relations...), '}')}, nil
}

// allowsIssues reports whether the caller has a right to issues in general; for a lane token,
// whether its maker has. A claim lets a lane read its own issue, and no others
// (LaneMaker.Claimed).
func (c *Caller) allowsIssues(level Level) bool {
	if c.Lane != nil {
		c = c.Maker
	}
	return c != nil && c.Allows(Needs{level, "issues"})
}

// SessionRelationType is the type of a relation that a session may give its issue. The types of
// duplicates are left out: they close an issue, and only a report ends a session.
type SessionRelationType RelationType

// EnumValues implements Enumerated.
func (SessionRelationType) EnumValues() []string {
	return enumTexts([]RelationType{RelationBlocks, RelationBlockedBy, RelationDiscoveredFrom, RelationLedTo, RelationRelates})
}

// RelateSessionIn is a relation of a session's issue to another issue.
type RelateSessionIn struct {
	ID      SessionID           `path:"id"`
	Type    SessionRelationType `json:"type" rules:"required"`
	IssueID IssueID             `json:"issueId" rules:"required"`
}

// RelateSession relates the issue of a session that has not ended to another issue. If the relation
// is there already, nothing changes (Decision 56). A lane token has no right to issues of its own, so
// the operation itself looks for that right.
var RelateSession = NewCommand[RelateSessionIn, RelationAnswer]("RelateSession", "Relate the issue of a session to another", Needs{Write, "sessions"}, relateSession, StrictBody, ForLanes)

func relateSession(tx *Tx, in *RelateSessionIn) (Reply, error) {
	if !tx.Caller.allowsIssues(Write) {
		if tx.Caller.Lane == nil {
			return Reply{}, errLacksRight(Needs{Write, "issues"})
		}
		return Reply{}, Forbidden("This needs the right to write issues, which the credential that claimed or registered the session does not have.",
			"Claim or register with a token that has the write permission or issues:write.")
	}
	row, err := tx.session(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("session")
	}
	if s := &row.Value; s.Status.Ended() {
		return Reply{}, s.conflict(fmt.Sprintf("The session has ended: it is %s.", s.Status), "Only a session that has not ended can relate its issue to others.")
	}
	issue, err := tx.writableIssue(string(row.Value.IssueID))
	if err != nil {
		return Reply{}, err
	}
	if in.IssueID == row.Value.IssueID {
		return Reply{}, BadRequest(Fault{Path: "issueId", Message: relatedToItself})
	}
	id, ok := storage.ParseID(string(in.IssueID))
	var other *relatedIssue
	if ok {
		if other, err = tx.relatedIssue(id); err != nil {
			return Reply{}, err
		}
	}
	if other == nil {
		return Reply{}, BadRequest(Fault{Path: "issueId", Message: "There is no such issue."})
	}
	answer, err := tx.putRelation(issue.Value.id(), RelationType(in.Type), string(in.IssueID))
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, answer)
}
