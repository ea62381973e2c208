package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// relatedIssue is what is shown of an issue at the other end of a relation.
type relatedIssue struct {
	storage.Header `json:"-"`

	ID         IssueID     `json:"id"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status"`
	AssigneeID *string     `json:"assigneeId"`
	Identifier *string     `json:"identifier"`
}

// canViewRelated reports whether the caller may know of an issue at the other end of a
// relation. A lane sees there what its maker sees, though it can't read these issues.
func (v *View) canViewRelated(rec storage.Record) (bool, error) {
	if v.Caller.Lane == nil {
		return v.canViewIssue(rec)
	}
	if v.Caller.Maker == nil {
		return false, nil
	}
	return v.callerCanView(v.Caller.Maker, rec)
}

// relatedIssue returns an issue at the other end of a relation, or nil if the caller may
// not see it.
func (v *View) relatedIssue(id storage.ID) (t *relatedIssue, err error) {
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) error {
		seen, err := v.canViewRelated(rec)
		if err != nil || !seen {
			return err
		}
		t = &relatedIssue{Header: rec.Header()}
		return json.Unmarshal(rec.JSON(), t)
	})
	if err != nil {
		return nil, fmt.Errorf("read a related issue: %w", err)
	}
	return t, nil
}

// otherIssue returns the issue that a path names as the other end of a relation.
func (v *View) otherIssue(text string) (storage.ID, *relatedIssue, error) {
	id, ok := storage.ParseID(text)
	if !ok {
		return id, nil, NotFound("issue")
	}
	t, err := v.relatedIssue(id)
	if err == nil && t == nil {
		err = NotFound("issue")
	}
	return id, t, err
}

// Relation is a relation as seen from one of its issues; the other fields are of the
// issue at its other end.
type Relation struct {
	Type        RelationType `json:"type"`
	IssueID     IssueID      `json:"issueId"`
	Identifier  *string      `json:"identifier"`
	Title       string       `json:"title"`
	Status      IssueStatus  `json:"status"`
	CreatedAt   Timestamp    `json:"createdAt"`
	CreatedByID string       `json:"createdById"`
}

// seenFrom returns the relation as seen from one of its issues; other is the issue at the
// other end.
func (r *relationRecord) seenFrom(issue storage.ID, other *relatedIssue) Relation {
	t, _ := r.edge().seenFrom(issue)
	return Relation{
		Type: t, IssueID: other.ID, Identifier: other.Identifier, Title: other.Title, Status: other.Status,
		CreatedAt: r.CreatedAt, CreatedByID: r.CreatedByID,
	}
}

// RelationAnswer is the answer to PutRelation.
type RelationAnswer struct {
	Relation Relation `json:"relation"`
}
