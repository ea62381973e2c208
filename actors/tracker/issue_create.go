package tracker

import (
	"fmt"

	"switchyard/storage"
)

// CreateIssueIn is a new issue. Only the title is required.
type CreateIssueIn struct {
	// Dedupe is the treatment of possible duplicates: to list them, or to refuse the
	// creation.
	Dedupe string `query:"dedupe" enum:"warn,block" default:"warn"`
	Title  string `json:"title" rules:"required,min=1,max=1000"`
	IssueFields
}

// CreatedIssue is the answer to a creation: the issue, and its possible duplicates.
type CreatedIssue struct {
	Issue
	PossibleDuplicates []PossibleDuplicate `json:"possibleDuplicates"`
}

// PossibleDuplicate is an issue whose title is similar to a new one's. Score is the
// fraction of significant terms that both titles have, from 0 to 1.
type PossibleDuplicate struct {
	ID         IssueID     `json:"id"`
	Identifier *string     `json:"identifier"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status"`
	Score      float64     `json:"score"`
}

// CreateIssue adds an issue, or returns the one that already has its externalRef
// (Decision 18).
var CreateIssue = NewCommand[CreateIssueIn, CreatedIssue]("CreateIssue", "Create an issue", Needs{Write, "issues"}, createIssue, Answers(Done, Created))

func createIssue(tx *Tx, in *CreateIssueIn) (Reply, error) {
	if ref := in.ExternalRef.Ptr(); ref != nil {
		if existing, err := tx.issueWithRef(*ref); err != nil || existing != nil {
			return answerExisting(tx, existing, err)
		}
	}
	t, err := tx.composeIssue(in.Title, &in.IssueFields)
	if err != nil {
		return Reply{}, err
	}
	duplicates, err := tx.possibleDuplicates(in.Title)
	if err != nil {
		return Reply{}, err
	}
	if in.Dedupe == "block" && len(duplicates) > 0 {
		return Reply{}, duplicateConflict(duplicates)
	}
	w, err := tx.writeIssue(nil, t)
	if err != nil {
		return Reply{}, err
	}
	body, err := createdIssue(w.body, duplicates)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: body, ETag: etag(1)}, nil
}

// composeIssue checks the fields of a request, fills in those of its template, and
// returns the new issue.
func (tx *Tx) composeIssue(title string, in *IssueFields) (*storage.Row[Issue], error) {
	var faults Faults
	fields, team, err := tx.checkIssue(in, &faults)
	if err == nil {
		err = faults.Err()
	}
	if err == nil && in.ParentID.Ptr() != nil {
		err = tx.refuseArchivedParent(in.ParentID.Value)
	}
	if err != nil {
		return nil, err
	}
	return tx.newIssue(title, team, fields)
}

// checkIssue checks the fields of a request against other records, and returns them with
// those of its template, and the team.
func (tx *Tx) checkIssue(in *IssueFields, faults *Faults) (*IssueFields, *storage.Row[Team], error) {
	fields, team, err := tx.templateFor(in, faults)
	if err != nil {
		return nil, nil, err
	}
	if parent := in.ParentID.Ptr(); parent != nil {
		fault, err := tx.parentFault(storage.ID{}, *parent)
		if err != nil {
			return nil, nil, err
		}
		if fault != "" {
			faults.Add("parentId", fault)
		}
	}
	return fields, team, nil
}

// newIssue returns an issue with checked fields, an id and the next number of its team,
// for writeIssue to store. It makes every issue.
func (tx *Tx) newIssue(title string, team *storage.Row[Team], fields *IssueFields) (*storage.Row[Issue], error) {
	id, err := tx.NewID()
	if err != nil {
		return nil, fmt.Errorf("make an issue's id: %w", err)
	}
	now := At(tx.Now())
	row := &storage.Row[Issue]{Value: Issue{
		ID: IssueID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), TeamID: team.Value.ID,
		ExternalRef: fields.ExternalRef.Ptr(), Title: title, ParentID: fields.ParentID.Ptr(),
		Status: StatusBacklog, Priority: PriorityMedium, CreatedAt: now, UpdatedAt: now,
	}}
	fields.apply(&row.Value)
	if err := tx.number(&row.Value, team.Team, team.Value.Key); err != nil {
		return nil, fmt.Errorf("number an issue: %w", err)
	}
	return row, nil
}

// createdIssue returns the answer to a creation, from the issue's JSON.
func createdIssue(body []byte, duplicates []duplicate) (_ []byte, err error) {
	const field = `,"possibleDuplicates":[`
	out := make([]byte, 0, len(body)+len(field)+2+256*len(duplicates))
	out = append(append(out, body[:len(body)-1]...), field...)
	for i := range duplicates {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = duplicates[i].append(out); err != nil {
			return nil, fmt.Errorf("encode a possible duplicate: %w", err)
		}
	}
	return append(out, `]}`...), nil
}

// DuplicateDetails are the details of the CONFLICT of a creation with dedupe=block.
type DuplicateDetails struct {
	PossibleDuplicates []PossibleDuplicate `json:"possibleDuplicates"`
}

func duplicateConflict(duplicates []duplicate) error {
	details := DuplicateDetails{make([]PossibleDuplicate, 0, len(duplicates))}
	for i := range duplicates {
		details.PossibleDuplicates = append(details.PossibleDuplicates, duplicates[i].PossibleDuplicate)
	}
	return &Error{
		Code: CodeConflict, Message: "There are open issues with a title like this one.",
		Hint:    "Look at details.possibleDuplicates. To create the issue anyway, leave out dedupe=block.",
		Details: details,
	}
}

// issueWithRef returns the primary key of the issue with an externalRef, or nil.
func (v *View) issueWithRef(ref string) ([]byte, error) {
	pk, err := issues.Lookup(v, issueByRef, storage.Key(nil).Str(ref))
	if err != nil {
		return nil, fmt.Errorf("look up an externalRef: %w", err)
	}
	return pk, nil
}

// refTaken returns the error for an externalRef that another issue has, which the
// caller may not be able to see.
func refTaken() error {
	return Conflict("Another issue has this externalRef.", "An externalRef is unique in a workspace: use another one, or clear the other issue's first.")
}

func answerExisting(tx *Tx, pk []byte, err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	reply, seen := Reply{Outcome: Done}, false
	_, err = issues.Record(tx, pk, func(rec storage.Record) (err error) {
		if seen, err = tx.canViewIssue(rec); seen {
			var body []byte
			var whole bool
			body, whole, err = (&visibility{v: &tx.View}).append(nil, rec)
			if err == nil {
				reply.ETag = shownETag(rec.Version(), whole)
				reply.Body, err = createdIssue(body, nil) // an existing issue has no list of duplicates
			}
		}
		return err
	})
	if err == nil && !seen {
		err = refTaken()
	}
	return reply, err
}
