package tracker

import "fmt"

// DeleteSCIMUserIn identifies a user.
type DeleteSCIMUserIn struct {
	SCIMBase
	ID      UserID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
}

// DeleteSCIMUser removes a user and the membership. The user's issues and comments
// stay.
var DeleteSCIMUser = NewWorkflow[DeleteSCIMUserIn, None]("DeleteScimUser", "Remove a provisioned user", Needs{Level: Read}, func(f Flow, in *DeleteSCIMUserIn) (Reply, error) {
	return memberFlow(f, deleteSCIMUserOp, &scimUserStep{SCIMBase: in.SCIMBase, ID: in.ID, IfMatch: in.IfMatch})
}, SCIMScope(SCIMUsersWrite), WithSpaceEffect(FreesSpace), Refuses(CodeConflict), Audits(auditMember))

var deleteSCIMUserOp = NewCommand[scimUserStep, None]("DeleteScimUserHere", "Remove a provisioned user", Needs{Level: Read}, deleteSCIMUser, SCIMScope(SCIMUsersWrite), WithSpaceEffect(FreesSpace), Audits(auditMember))

func deleteSCIMUser(tx *Tx, in *scimUserStep) (Reply, error) {
	row, err := tx.matchedSCIMUser(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	u := row.Value
	if more, err := tx.settleMember(&u, false, false); err != nil || more {
		return Reply{More: more}, err
	}
	if err := scimUsers.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("remove a provisioned user: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.countRecord(scimUserTable, -1)
}
