package tracker

import (
	"fmt"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// SpawnSessionIn is a new child of a session: an issue below the session's own, and a
// session of that issue.
type SpawnSessionIn struct {
	ID          SessionID   `path:"id"`
	Title       string      `json:"title" rules:"required,min=1,max=1000"`
	Description Opt[string] `json:"description" rules:"max=262144"`
	AgentID     Opt[string] `json:"agentId" rules:"min=1,max=255"`
	Model       Opt[string] `json:"model" rules:"max=200"`
	Repo        Opt[string] `json:"repo" rules:"max=255"`
}

// SpawnedIssue is the issue of a child session.
type SpawnedIssue struct {
	ID          IssueID       `json:"id"`
	Identifier  *string       `json:"identifier"`
	Title       string        `json:"title"`
	Description *string       `json:"description"`
	Status      IssueStatus   `json:"status"`
	Priority    IssuePriority `json:"priority"`
	Repo        *string       `json:"repo"`
	Branch      *string       `json:"branch"`
	ParentID    *IssueID      `json:"parentId"`
	CreatedAt   Timestamp     `json:"createdAt"`
	UpdatedAt   Timestamp     `json:"updatedAt"`
}

// SpawnedSession is the answer to SpawnSession.
type SpawnedSession struct {
	Session NewChildSession `json:"session"`
	Issue   SpawnedIssue    `json:"issue"`
}

// NewChildSession is a new session as a poll shows one. It has no activities yet.
type NewChildSession struct {
	AgentSession
	Activities []Activity `json:"activities"`
}

// maxSessionDepth is the most levels that a session may be below the top one.
const maxSessionDepth = 5

// SpawnSession makes a child of a session that has not ended (Decision 35).
var SpawnSession = NewCommand[SpawnSessionIn, SpawnedSession]("SpawnSession", "Spawn a child session", Needs{Write, "sessions"}, spawnSession, StrictBody, ForLanes, Answers(Created))

func spawnSession(tx *Tx, in *SpawnSessionIn) (Reply, error) {
	parent, above, err := tx.spawnable(in.ID)
	if err != nil {
		return Reply{}, err
	}
	issue, err := tx.childIssue(in, above)
	if err != nil {
		return Reply{}, err
	}
	agent := in.AgentID.Value
	if agent == "" {
		// The parent's agent is used if no other is found.
		if agent, _, err = tx.pickAgent("", &issue.Value); err != nil {
			return Reply{}, err
		}
		if agent == unassigned {
			agent = parent.AgentID
		}
	}
	title := in.Title
	_, body, _, err := tx.addSession(&newSession{Issue: issue, AgentID: agent, Model: in.Model.Value, Label: &title, Parent: parent})
	if err != nil {
		return Reply{}, err
	}
	t := &issue.Value
	shown, err := json.MarshalWithOption(&SpawnedIssue{
		ID: t.ID, Identifier: t.Identifier, Title: t.Title, Description: t.Description, Status: t.Status, Priority: t.Priority,
		Repo: t.Repo, Branch: t.Branch, ParentID: t.ParentID, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}, json.DisableHTMLEscape())
	if err != nil {
		return Reply{}, fmt.Errorf("encode an issue: %w", err)
	}
	out := append(append([]byte(`{"session":`), polledPart(body)...), `,"activities":[]},"issue":`...)
	return Reply{Outcome: Created, Body: append(append(out, shown...), '}')}, nil
}

// spawnable returns a session that may have one more child, and its issue.
func (tx *Tx) spawnable(id SessionID) (*sessionRecord, *storage.Row[Issue], error) {
	row, err := tx.session(id)
	if err != nil {
		return nil, nil, err
	}
	if row == nil {
		return nil, nil, NotFound("session")
	}
	s := &row.Value
	if s.Inner.Orphan {
		return nil, nil, NotFound("issue")
	}
	if s.Status.Ended() {
		return nil, nil, errNoChildren(fmt.Sprintf("The session has ended: it is %s.", s.Status), "Only a session that has not ended can have further children.")
	}
	if s.Inner.Depth >= maxSessionDepth {
		return nil, nil, errNoChildren(fmt.Sprintf("The session is %d levels below the top one, the most there can be.", maxSessionDepth), "Do the work in this session, or spawn from one further up.")
	}
	issue, err := tx.writableIssue(string(s.IssueID))
	if err != nil {
		return nil, nil, err
	}
	return s, issue, tx.roomForChild(s.id(), "The session")
}

// errNoChildren returns the error for a child of a session that can't have any.
func errNoChildren(message, hint string) *Error {
	err := BadRequest(Fault{Message: message})
	err.Hint = hint
	return err
}

// roomForChild returns TOO_MANY_REQUESTS if a session, which the message calls name, has as
// many unfinished children as it may have.
func (tx *Tx) roomForChild(parent storage.ID, name string) error {
	most := tx.operator.maxActiveChildren()
	active := 0
	if err := tx.Rows(sessionByParent, storage.Key(nil).ID(parent).Byte(0), nil, func(_, _ []byte) (bool, error) {
		active++
		return active < most, nil
	}); err != nil {
		return fmt.Errorf("count the children of a session: %w", err)
	}
	if active >= most {
		return &Error{
			Code: CodeTooManyRequests, Message: fmt.Sprintf("%s has %d children that have not ended, the most there can be.", name, active),
			Hint: "Wait until one of them ends, then ask again.", RetryAfter: 5 * time.Second,
		}
	}
	return nil
}

// roomBelow is roomForChild for the parent of a session that is retried. It returns nil if
// there is no parent, or if the parent has ended and so spawns no children itself.
func (tx *Tx) roomBelow(parent SessionID) error {
	id, ok := storage.ParseID(parent)
	if !ok {
		return nil
	}
	ended := true
	if _, err := sessions.Record(tx, sessionKey(id), func(rec storage.Record) error {
		ended = rec.Flags()&sessionHasEnded != 0
		return nil
	}); err != nil {
		return fmt.Errorf("read a session's parent: %w", err)
	}
	if ended {
		return nil
	}
	return tx.roomForChild(id, "The session's parent")
}

// childIssue makes the issue of a child session. It inherits the team, project, cycle,
// repo and grants of the parent's issue.
func (tx *Tx) childIssue(in *SpawnSessionIn, above *storage.Row[Issue]) (*storage.Row[Issue], error) {
	parent := &above.Value
	fault, err := tx.parentFault(storage.ID{}, parent.ID)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		return nil, BadRequest(Fault{Message: fault})
	}
	team, err := tx.readTeam(storage.Key(nil).DescID(parent.team()))
	if err != nil {
		return nil, err
	}
	if team == nil {
		return nil, fmt.Errorf("issue %s: its team is not there", parent.ID)
	}
	fields := IssueFields{ParentID: Some(parent.ID), Description: in.Description}
	fill(&fields.ProjectID, parent.ProjectID)
	fill(&fields.CycleID, parent.CycleID)
	fill(&fields.Repo, firstOf(in.Repo, parent.Repo))
	row, err := tx.newIssue(in.Title, team, &fields)
	if err != nil {
		return nil, err
	}
	if _, err := tx.writeIssue(nil, row); err != nil {
		return nil, err
	}
	if above.Flags&issueRestricted != 0 {
		err = tx.copyGrants(above, row)
	}
	return row, err
}
