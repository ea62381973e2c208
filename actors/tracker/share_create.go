package tracker

import (
	"fmt"
	"time"
)

// CreateShareIn is a new share of an issue.
type CreateShareIn struct {
	ID        string      `path:"id"`
	ExpiresAt Opt[string] `json:"expiresAt" rules:"nullable,datetime"`
}

// Validate checks what the tags can't express.
func (in *CreateShareIn) Validate(faults *Faults) {
	if at := in.ExpiresAt.Ptr(); at != nil && !faults.Has("expiresAt") && snooze(at) == nil {
		faults.Add("expiresAt", "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
}

// ValidateFor checks that the share's end lies ahead.
func (in *CreateShareIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	if ends := snooze(in.ExpiresAt.Ptr()); ends != nil && *ends <= At(now) {
		faults.Add("expiresAt", faultPast)
	}
}

// CreateShare makes an issue readable for anybody with the share's token, and ends an
// earlier share of the issue (Decision 27).
var CreateShare = NewCommand[CreateShareIn, IssueShare]("CreateShare", "Share an issue", Needs{Write, "issues"}, createShare, WithSecret, Answers(Created), Audits(auditShare))

func createShare(tx *Tx, in *CreateShareIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	token, err := tx.newShareToken()
	if err != nil {
		return Reply{}, err
	}
	share := IssueShare{
		Token: token, OrganizationID: row.Value.OrganizationID, IssueID: row.Value.ID,
		CreatedByID: tx.Caller.ID, CreatedAt: At(tx.order), ExpiresAt: snooze(in.ExpiresAt.Ptr()),
	}
	before, err := shares.Get(tx, issueKey(row.Value.id()))
	if err != nil {
		return Reply{}, fmt.Errorf("read a share: %w", err)
	}
	var body []byte
	if before != nil {
		body, err = shares.Update(tx, before, &share)
	} else {
		body, err = shares.Insert(tx, &share)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("add a share: %w", err)
	}
	return Reply{Outcome: Created, Body: body}, nil
}
