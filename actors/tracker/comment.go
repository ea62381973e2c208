package tracker

import (
	"fmt"

	"switchyard/storage"
)

// CommentID is the id of a comment.
type CommentID string

// Comment is a comment on an issue, or a reply to one. Callers who see the issue see
// it.
type Comment struct {
	ID             CommentID   `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	IssueID        IssueID     `json:"issueId"`
	ParentID       *CommentID  `json:"parentId"`
	AuthorID       string      `json:"authorId"`
	AuthorType     ActorType   `json:"authorType"`
	Body           string      `json:"body"`
	CreatedAt      Timestamp   `json:"createdAt"`
	UpdatedAt      Timestamp   `json:"updatedAt"`
}

// Types of events about comments.
var (
	eventCommentCreated = newEventKind("comment.created", "issues", onIssueID)
	eventCommentUpdated = newEventKind("comment.updated", "issues", onIssueID)
	eventCommentDeleted = newEventKind("comment.deleted", "issues", onIssueID)
)

// comments holds the comments of issues; those of one issue are together, newest first.
// A comment's header is empty: its issue's record decides who may see it.
var comments = storage.Table[Comment]{
	ID:   commentTable,
	Name: "comment",
	Key: func(k storage.Key, c *Comment) storage.Key {
		issue, _ := storage.ParseID(c.IssueID)
		return newestKey(k.ID(issue), c.ID)
	},
	Indexes: []storage.Index[Comment]{
		{ID: commentByID, Name: "id", Unique: true, Entries: func(e *storage.Entries, c *Comment) {
			id, _ := storage.ParseID(c.ID)
			e.Add(e.Key().ID(id))
		}},
		{ID: commentByParent, Name: "parent", Entries: func(e *storage.Entries, c *Comment) {
			if c.ParentID != nil {
				id, _ := storage.ParseID(*c.ParentID)
				e.Add(e.Key().ID(id))
			}
		}},
	},
}

var _ = declareTable(&comments)

// commentKey returns the primary key of a comment: its issue and its id, newest first.
func commentKey(issue, comment storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, commentKeyLen)).ID(issue).DescID(comment)
}

const commentKeyLen = 2 * len(storage.ID{})

// placedComment is a comment with the header of its issue's record, which decides who
// may see events of it.
type placedComment struct {
	*storage.Row[Comment]
	issue storage.Header
}

// on returns the id of the comment's issue.
func (c *placedComment) on() storage.ID {
	id, _ := storage.ParseID(c.Value.IssueID)
	return id
}

// comment returns a comment, or nil if it does not exist or the caller may not see its
// issue.
func (v *View) comment(id string) (*placedComment, error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return nil, nil
	}
	pk, err := comments.Lookup(v, commentByID, parsed[:])
	if err != nil || pk == nil {
		return nil, err
	}
	if len(pk) != commentKeyLen {
		return nil, fmt.Errorf("%w: comment %s has a key of %d bytes", storage.ErrFormat, id, len(pk))
	}
	head, err := v.issueHead(storage.ID(pk))
	if err != nil || head == nil {
		return nil, err
	}
	row, err := comments.Get(v, pk)
	if err != nil {
		return nil, fmt.Errorf("read a comment: %w", err)
	}
	if row == nil { // deleted between the two reads of a query without a snapshot
		return nil, nil
	}
	return &placedComment{row, *head}, nil
}

// issueHead returns the header of an issue's record, or nil if the issue does not exist
// or the caller may not see it.
func (v *View) issueHead(id storage.ID) (head *storage.Header, err error) {
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) error {
		seen, err := v.canViewIssue(rec)
		if err == nil && seen {
			h := rec.Header()
			head = &h
		}
		return err
	})
	return head, err
}

// issueHeadIn is like issueHead for the id in a path, and returns NOT_FOUND instead of
// nil.
func (v *View) issueHeadIn(path string) (storage.ID, storage.Header, error) {
	id, ok := storage.ParseID(path)
	if !ok {
		return id, storage.Header{}, NotFound("issue")
	}
	head, err := v.issueHead(id)
	if err != nil {
		return id, storage.Header{}, err
	}
	if head == nil {
		return id, storage.Header{}, NotFound("issue")
	}
	return id, *head, nil
}

// addComment stores a comment by the caller on an issue with this header, with its
// event, and returns its id and JSON. A parent must be a comment of the same issue;
// otherwise addComment returns a fault at path.
func (tx *Tx) addComment(issue storage.ID, head storage.Header, text string, parent *CommentID, path string) (CommentID, []byte, error) {
	if err := tx.refuseArchivedHead(issue, head); err != nil {
		return "", nil, err
	}
	if parent != nil {
		above, found := storage.ParseID(*parent)
		if found {
			var err error
			if found, err = tx.Has(commentTable, commentKey(issue, above)); err != nil {
				return "", nil, fmt.Errorf("look for a comment: %w", err)
			}
		}
		if !found {
			return "", nil, BadRequest(Fault{Path: path, Message: "There is no such comment on this issue."})
		}
	}
	id, err := tx.NewID()
	if err != nil {
		return "", nil, fmt.Errorf("make a comment's id: %w", err)
	}
	now := At(tx.now)
	c := Comment{
		ID: CommentID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), IssueID: IssueID(issue.String()), ParentID: parent,
		AuthorID: tx.Caller.ID, AuthorType: tx.Caller.Type, Body: text, CreatedAt: now, UpdatedAt: now,
	}
	body, err := comments.Insert(tx, &c)
	if err != nil {
		return "", nil, fmt.Errorf("store a comment: %w", err)
	}
	return c.ID, body, tx.Emit(eventCommentCreated, head, body, nil)
}

// updateComment stores a changed comment with its event, and returns its JSON.
func (tx *Tx) updateComment(old *placedComment, c *Comment) ([]byte, error) {
	var list changes
	note(&list, "parentId", old.Value.ParentID, c.ParentID)
	note(&list, "body", &old.Value.Body, &c.Body)
	c.UpdatedAt = At(tx.now)
	body, err := comments.Update(tx, old.Row, c)
	if err != nil {
		return nil, fmt.Errorf("store a comment: %w", err)
	}
	return body, tx.Emit(eventCommentUpdated, old.issue, body, list)
}

// mayEdit returns FORBIDDEN unless the caller wrote the comment or is an admin.
func (c *Comment) mayEdit(caller *Caller) error {
	if c.AuthorID == caller.ID && c.AuthorType == caller.Type || caller.Allows(Needs{Level: Admin}) {
		return nil
	}
	return Forbidden("Only its author or an admin may change or delete a comment.", "Use the token of the comment's author, or of an owner or admin of the workspace.")
}
