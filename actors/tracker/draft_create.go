package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// DraftRights is the right that a proposal needs: to write issues or sessions.
const DraftRights = "drafts"

// CreateDraftIn is a proposed write. The issue of the draft is issueId, or entityId if
// entityType is "issue", or the session's; only a draft of a new issue needs none.
type CreateDraftIn struct {
	Kind       DraftKind      `json:"kind" rules:"required"`
	Payload    DraftPayload   `json:"payload" rules:"required"`
	IssueID    Opt[IssueID]   `json:"issueId" rules:"nullable,min=1,max=255"`
	EntityType Opt[string]    `json:"entityType" rules:"nullable,min=1,max=64"`
	EntityID   Opt[string]    `json:"entityId" rules:"nullable,min=1,max=255"`
	SessionID  Opt[SessionID] `json:"sessionId" rules:"nullable,min=1,max=255"`
}

// Validate checks what the tags can't express.
func (in *CreateDraftIn) Validate(faults *Faults) {
	in.Payload.validate(in.Kind, faults)
	if issue, entity := in.IssueID.Ptr(), in.EntityID.Ptr(); issue != nil && entity != nil && in.entityType() == entityIssue && string(*issue) != *entity {
		faults.Add("entityId", "Must name the same issue as issueId.")
	}
}

// ValidateFor checks that the draft leads to its issue. A lane token's is that of its
// session.
func (in *CreateDraftIn) ValidateFor(caller *Caller, _ time.Time, faults *Faults) {
	switch {
	case in.Kind == DraftIssueCreate, in.Kind == "", caller.Lane != nil:
	case in.IssueID.Ptr() != nil, in.SessionID.Ptr() != nil, in.entityType() == entityIssue && in.EntityID.Ptr() != nil:
	case faults.Has("issueId"), faults.Has("sessionId"), faults.Has("entityId"):
	default:
		faults.Add("issueId", "Is required, unless entityId or sessionId leads to the issue.")
	}
}

// Unused returns the paths of the payload's properties that the kind doesn't use.
func (in *CreateDraftIn) Unused() []string {
	names := unusedInPayload[in.Kind]
	paths := make([]string, 0, len(names))
	for _, name := range names {
		paths = append(paths, "payload."+name)
	}
	return paths
}

func (in *CreateDraftIn) entityType() string { return in.EntityType.Or(entityIssue) }

// CreateDraft stores a proposed write until it is published or discarded (Decision 40).
// A lane token proposes for its own session and issue.
var CreateDraft = NewCommand[CreateDraftIn, Draft]("CreateDraft", "Propose a write", Needs{Write, DraftRights}, createDraft, ForLanes, Answers(Created))

func createDraft(tx *Tx, in *CreateDraftIn) (Reply, error) {
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, fmt.Errorf("make a draft's id: %w", err)
	}
	now := At(tx.now)
	d := &draftRecord{Draft: Draft{
		ID: DraftID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), EntityType: in.entityType(), EntityID: in.EntityID.Ptr(),
		IssueID: in.IssueID.Ptr(), Kind: in.Kind, Status: DraftPending, CreatedByID: tx.Caller.ID, SessionID: in.SessionID.Ptr(),
		CreatedAt: now, UpdatedAt: now, Payload: in.Payload.Whole,
	}}
	if err := tx.placeDraft(d); err != nil {
		return Reply{}, err
	}
	if err := tx.judgeDraft(d, &in.Payload); err != nil {
		return Reply{}, err
	}
	header, err := tx.draftHeader(d)
	if err != nil {
		return Reply{}, err
	}
	body, err := drafts.Insert(tx, d)
	if err != nil {
		return Reply{}, fmt.Errorf("store a draft: %w", err)
	}
	body = publicCopy(body)
	return Reply{Outcome: Created, Body: body}, tx.Emit(eventDraftCreated, header, body, nil)
}

// placeDraft sets the session and the issue of a new draft, or returns NOT_FOUND if the
// caller can't see them.
func (tx *Tx) placeDraft(d *draftRecord) error {
	var ofSession *IssueID
	if lane := tx.Caller.Lane; lane != nil && d.SessionID == nil {
		own := SessionID(lane.Session.String())
		d.SessionID = &own
	}
	if d.SessionID != nil {
		session, err := tx.session(*d.SessionID)
		if err != nil {
			return err
		}
		if session == nil {
			return NotFound("session")
		}
		d.SessionID, ofSession = &session.Value.ID, &session.Value.IssueID
	}
	switch {
	case d.IssueID != nil:
	case d.EntityType == entityIssue && d.EntityID != nil:
		id := IssueID(*d.EntityID)
		d.IssueID = &id
	case ofSession != nil:
		d.IssueID = ofSession
	default: // the proposal is a new issue
		return nil
	}
	id, _, err := tx.issueHeadIn(string(*d.IssueID))
	if err != nil {
		return err
	}
	issue, entity := IssueID(id.String()), id.String()
	d.IssueID = &issue
	if d.EntityType == entityIssue && (d.EntityID != nil || d.Kind != DraftIssueCreate) {
		d.EntityID = &entity
	}
	return nil
}

// judgeDraft returns an error if the proposal can't be published now because of a team
// or parent that it names. It sets the team of a draft without an issue.
func (tx *Tx) judgeDraft(d *draftRecord, p *DraftPayload) error {
	var faults Faults
	var issue storage.ID
	if d.IssueID != nil {
		issue, _ = storage.ParseID(*d.IssueID)
	}
	parent := p.ParentID.Ptr()
	switch d.Kind {
	case DraftComment:
		if parent != nil {
			if found, err := tx.hasComment(issue, CommentID(*parent)); err != nil {
				return err
			} else if !found {
				faults.Add("parentId", "There is no such comment on this issue.")
			}
		}
		return inPayload(faults.Err())
	case DraftIssueCreate:
		issue = storage.ID{}
		team, err := tx.draftTeam(&p.IssueFields, &faults)
		if err != nil {
			return inPayload(err)
		}
		if team != nil && d.IssueID == nil {
			d.Inner.Team = team.Value.ID
		}
	case DraftIssueUpdate:
		if _, err := tx.draftNamedTeam(&p.IssueFields, &faults); err != nil {
			return err
		}
	}
	if parent != nil {
		fault, err := tx.parentFault(issue, *parent)
		if err != nil {
			return err
		}
		if fault != "" {
			faults.Add("parentId", fault)
		}
	}
	return inPayload(faults.Err())
}

// draftTeam returns the team that a proposed issue would belong to now.
func (tx *Tx) draftTeam(f *IssueFields, faults *Faults) (*storage.Row[Team], error) {
	if f.TeamID.Set || f.TeamKey.Set {
		return tx.draftNamedTeam(f, faults)
	}
	_, team, err := tx.templateFor(f, faults)
	return team, err
}

// draftNamedTeam is like namedTeam, for a proposal. A lane token, which sees no teams,
// may only name its own issue's.
func (tx *Tx) draftNamedTeam(f *IssueFields, faults *Faults) (*storage.Row[Team], error) {
	if !f.TeamID.Set && !f.TeamKey.Set {
		return nil, nil
	}
	lane := tx.Caller.Lane
	if lane == nil {
		return tx.namedTeam(f, "", faults)
	}
	head, err := tx.issueHead(lane.Issue)
	if err != nil {
		return nil, err
	}
	var found Faults
	team, err := tx.namedTeam(f, "", &found)
	if err != nil {
		return nil, err
	}
	if team == nil || head == nil || team.Team != head.Team {
		field := "teamId"
		if !f.TeamID.Set {
			field = "teamKey"
		}
		faults.Add(field, "There is no such team, or the lane token may not name it.")
		return nil, nil
	}
	return team, nil
}

// hasComment reports whether an issue has a comment with this id.
func (v *View) hasComment(issue storage.ID, id CommentID) (bool, error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return false, nil
	}
	found, err := v.Has(commentTable, commentKey(issue, parsed))
	if err != nil {
		return false, fmt.Errorf("look for a comment: %w", err)
	}
	return found, nil
}

// inPayload moves the faults of a write below the payload that proposes it.
func inPayload(err error) error {
	list := faultsOf(err)
	if list == nil {
		return err
	}
	moved := make([]Fault, 0, len(list))
	for _, fault := range list {
		moved = append(moved, Fault{Path: "payload." + fault.Path, Message: fault.Message})
	}
	return BadRequest(moved...)
}
