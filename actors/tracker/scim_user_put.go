package tracker

// PutSCIMUserIn replaces a user.
type PutSCIMUserIn struct {
	SCIMBase
	SCIMSelection
	ID      UserID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
	SCIMUserIn
}

// PutSCIMUser replaces the attributes of a user. Without active in the request the user
// stays active or inactive.
var PutSCIMUser = NewWorkflow[PutSCIMUserIn, SCIMUser]("PutScimUser", "Replace a provisioned user", Needs{Level: Read}, func(f Flow, in *PutSCIMUserIn) (Reply, error) {
	active, err := in.active()
	if err != nil {
		return Reply{}, err
	}
	return memberFlow(f, putSCIMUserOp, &scimUserStep{
		SCIMBase: in.SCIMBase, SCIMSelection: in.SCIMSelection, ID: in.ID, IfMatch: in.IfMatch, User: in.attributes(), Active: active,
	})
}, SCIMScope(SCIMUsersWrite), Audits(auditMember))

var putSCIMUserOp = NewCommand[scimUserStep, SCIMUser]("PutScimUserHere", "Replace a provisioned user", Needs{Level: Read}, putSCIMUser, SCIMScope(SCIMUsersWrite), Audits(auditMember))

func putSCIMUser(tx *Tx, in *scimUserStep) (Reply, error) {
	row, err := tx.matchedSCIMUser(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	u := row.Value
	u.SCIMUserAttributes = in.User
	return tx.changeSCIMUser(row, &u, in.Active, &in.SCIMBase, &in.SCIMSelection)
}
