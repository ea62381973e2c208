package tracker

import (
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// DraftID is the id of a draft.
type DraftID string

// DraftKind is the kind of write that a draft proposes.
type DraftKind string

// The kinds of drafts.
const (
	DraftComment     DraftKind = "comment"
	DraftIssueCreate DraftKind = "issue_create"
	DraftIssueUpdate DraftKind = "issue_update"
)

// EnumValues implements Enumerated.
func (DraftKind) EnumValues() []string {
	return enumTexts([]DraftKind{DraftComment, DraftIssueCreate, DraftIssueUpdate})
}

// DraftStatus is the status of a draft.
type DraftStatus string

// The statuses of a draft. Published and discarded are final.
const (
	DraftPending   DraftStatus = "pending"
	DraftPublished DraftStatus = "published"
	DraftDiscarded DraftStatus = "discarded"
)

// draftStatuses lists every status. The position of a status is its byte in the index,
// so the order is part of the format on disk.
var draftStatuses = [...]DraftStatus{DraftPending, DraftPublished, DraftDiscarded}

func (s DraftStatus) rank() byte { return rankOf(draftStatuses[:], s) }

// EnumValues implements Enumerated.
func (DraftStatus) EnumValues() []string { return enumTexts(draftStatuses[:]) }

// Types of events about drafts.
var (
	eventDraftCreated   = newEventKind("draft.created", "issues", onDraft)
	eventDraftPublished = newEventKind("draft.published", "issues", onDraft)
	eventDraftDiscarded = newEventKind("draft.discarded", "issues", onDraft)
)

// entityIssue is the entityType of a draft whose entityId is the id of an issue.
const entityIssue = "issue"

// Draft is a write that one actor proposes and another decides on. Payload is the last
// field: searches in the stored form look for fields in front of it.
type Draft struct {
	ID                 DraftID         `json:"id"`
	OrganizationID     WorkspaceID     `json:"organizationId"`
	EntityType         string          `json:"entityType"`
	EntityID           *string         `json:"entityId"`
	IssueID            *IssueID        `json:"issueId"`
	Kind               DraftKind       `json:"kind"`
	Status             DraftStatus     `json:"status"`
	CreatedByID        string          `json:"createdById"`
	SessionID          *SessionID      `json:"sessionId"`
	ReviewedByID       *string         `json:"reviewedById"`
	ReviewedAt         *Timestamp      `json:"reviewedAt"`
	ReviewNote         *string         `json:"reviewNote"`
	PublishedCommentID *CommentID      `json:"publishedCommentId"`
	CreatedAt          Timestamp       `json:"createdAt"`
	UpdatedAt          Timestamp       `json:"updatedAt"`
	Payload            json.RawMessage `json:"payload" form:"object"`
}

// draftRecord is the stored form of a draft: the public part, and then the fields that
// clients don't get (see publicPart).
type draftRecord struct {
	Draft
	Inner draftInner `json:"inner"`
}

// draftInner holds the fields of a draft that clients don't get.
type draftInner struct {
	// Team is the team of the issue that a draft without an issue proposes; callers who
	// see the team see the draft.
	Team TeamID `json:"team,omitempty"`
}

// Flags of a draft's record, which can be read without decoding it.
const (
	draftOnIssue storage.Flags = 1 << iota
	draftOfSession
)

// The first byte of an entry of draftByAbout.
const (
	aboutIssue byte = iota
	aboutSession
)

// aboutKey returns the entry of draftByAbout for an issue or a session.
func aboutKey[ID ~string](k storage.Key, what byte, id ID) storage.Key {
	parsed, _ := storage.ParseID(id)
	return k.Byte(what).ID(parsed)
}

// drafts holds the drafts of a workspace, newest first, including the decided ones.
var drafts = storage.Table[draftRecord]{
	ID:   draftTable,
	Name: "draft",
	Key:  func(k storage.Key, d *draftRecord) storage.Key { return newestKey(k, d.ID) },
	Head: func(d *draftRecord) (flags storage.Flags, team storage.ID) {
		if d.SessionID != nil {
			flags |= draftOfSession
		}
		if d.IssueID != nil {
			return flags | draftOnIssue, team
		}
		team, _ = storage.ParseID(d.Inner.Team)
		return flags, team
	},
	Indexes: []storage.Index[draftRecord]{
		{ID: draftByAbout, Name: "about", Entries: func(e *storage.Entries, d *draftRecord) {
			if d.IssueID != nil {
				e.Add(aboutKey(e.Key(), aboutIssue, *d.IssueID))
			}
			if d.SessionID != nil {
				e.Add(aboutKey(e.Key(), aboutSession, *d.SessionID))
			}
		}},
		{ID: draftByStatus, Name: "status", Entries: func(e *storage.Entries, d *draftRecord) {
			e.Add(e.Key().Byte(d.Status.rank()))
		}},
	},
}

var _ = declareTable(&drafts)
