package tracker

import (
	"fmt"

	"switchyard/storage"
)

// CreateIssueIn asks for a new issue. Only the title is required.
type CreateIssueIn struct {
	// Dedupe says whether possible duplicates stand in the way of the creation.
	Dedupe string `query:"dedupe" enum:"warn,block"`
	Title  string `json:"title" rules:"required,min=1,max=1000"`
	IssueFields
}

// CreatedIssue is the answer to a creation: the issue, and what may be the same.
type CreatedIssue struct {
	Issue
	PossibleDuplicates []PossibleDuplicate `json:"possibleDuplicates"`
}

// PossibleDuplicate is an issue whose title is close to a new one's. Score is the
// share of significant title terms in common, 0 to 1.
type PossibleDuplicate struct {
	ID         IssueID     `json:"id"`
	Identifier *string     `json:"identifier"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status" enum:"triage,backlog,todo,in_progress,done,canceled"`
	Score      float64     `json:"score"`
}

// CreateIssue adds an issue, or answers with the one that already has its
// externalRef (Decision 18).
var CreateIssue = NewCommand[CreateIssueIn, CreatedIssue]("CreateIssue", "Create an issue", Needs{Write, "issues"}, createIssue)

func createIssue(tx *Tx, in *CreateIssueIn) (Reply, error) {
	if ref := in.ExternalRef.Ptr(); ref != nil {
		if existing, err := tx.issueWithRef(*ref); err != nil || existing != nil {
			return answerExisting(tx, existing, err)
		}
	}
	var faults Faults
	fields, team, err := tx.templateFor(&in.IssueFields, &faults)
	if err != nil {
		return Reply{}, err
	}
	if parent := in.ParentID.Ptr(); parent != nil {
		fault, err := tx.parentFault(storage.ID{}, *parent)
		if err != nil {
			return Reply{}, err
		}
		if fault != "" {
			faults.Add("parentId", fault)
		}
	}
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, fmt.Errorf("make an issue's id: %w", err)
	}
	now := At(tx.Now())
	t := &Issue{
		ID: IssueID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), TeamID: team.Value.ID,
		ExternalRef: in.ExternalRef.Ptr(), Title: in.Title, ParentID: fields.ParentID.Ptr(),
		Status: StatusBacklog, Priority: PriorityMedium, CreatedAt: now, UpdatedAt: now,
	}
	fields.apply(t)
	if err := tx.number(t, team.Team, team.Value.Key); err != nil {
		return Reply{}, fmt.Errorf("number an issue: %w", err)
	}
	body, err := tx.addIssue(t)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: createdIssue(body), ETag: etag(1)}, nil
}

// createdIssue gives an issue's JSON the shape of a creation's answer. The list of
// possible duplicates is empty, as Decision 18 has it for an existing issue; a new
// one's gets its entries where duplicates are searched for.
func createdIssue(body []byte) []byte {
	const rest = `,"possibleDuplicates":[]}`
	out := make([]byte, 0, len(body)+len(rest))
	return append(append(out, body[:len(body)-1]...), rest...)
}

// issueWithRef finds the primary key of the issue that has an externalRef; nil
// when none has.
func (v *View) issueWithRef(ref string) ([]byte, error) {
	pk, err := issues.Lookup(v, issueByRef, storage.Key(nil).Str(ref))
	if err != nil {
		return nil, fmt.Errorf("look up an externalRef: %w", err)
	}
	return pk, nil
}

// refTaken is the answer when an issue has the externalRef that another is to
// have. It also stands for an issue that the caller may not see.
func refTaken() error {
	return Conflict("Another issue has this externalRef.", "An externalRef is unique in a workspace: use another one, or clear the other issue's first.")
}

func answerExisting(tx *Tx, pk []byte, err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	reply, seen := Reply{Outcome: Done}, false
	_, err = issues.Record(tx, pk, func(rec storage.Record) (err error) {
		if seen, err = tx.seesIssue(rec); seen {
			reply.Body, reply.ETag = createdIssue(rec.JSON()), etag(rec.Version())
		}
		return err
	})
	if err == nil && !seen {
		err = refTaken()
	}
	return reply, err
}
