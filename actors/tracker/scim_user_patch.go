package tracker

import (
	"encoding/json"
	"slices"
)

// PatchSCIMUserIn changes a user.
type PatchSCIMUserIn struct {
	SCIMBase
	SCIMSelection
	ID      UserID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
	SCIMOperations
}

// patchSCIMUserStep is the input of the step in the user's workspace. The operations
// are sent as text, since a value may be absent or of any type.
type patchSCIMUserStep struct {
	SCIMBase
	SCIMSelection
	ID         UserID `json:"id"`
	IfMatch    string `json:"ifMatch"`
	Operations []struct {
		Op, Path, Value string
	} `json:"operations"`
}

// PatchSCIMUser changes a user by the operations of RFC 7644; either all of them take
// effect or none.
var PatchSCIMUser = NewWorkflow[PatchSCIMUserIn, SCIMUser]("PatchScimUser", "Change a provisioned user", Needs{Level: Read}, func(f Flow, in *PatchSCIMUserIn) (Reply, error) {
	step := patchSCIMUserStep{SCIMBase: in.SCIMBase, SCIMSelection: in.SCIMSelection, ID: in.ID, IfMatch: in.IfMatch}
	for i := range in.Operations {
		op := &in.Operations[i]
		step.Operations = append(step.Operations, struct{ Op, Path, Value string }{op.Op, op.Path.Or(""), string(op.Value)})
	}
	return memberFlow(f, patchSCIMUserOp, &step)
}, SCIMScope(SCIMUsersWrite), Audits(auditMember))

var patchSCIMUserOp = NewCommand[patchSCIMUserStep, SCIMUser]("PatchScimUserHere", "Change a provisioned user", Needs{Level: Read}, patchSCIMUser, SCIMScope(SCIMUsersWrite), Audits(auditMember))

func patchSCIMUser(tx *Tx, in *patchSCIMUserStep) (Reply, error) {
	row, err := tx.matchedSCIMUser(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	var all SCIMOperations
	for _, op := range in.Operations {
		all.Operations = append(all.Operations, SCIMOperation{Op: op.Op, Path: Some(op.Path), Value: json.RawMessage(op.Value)})
	}
	edits, err := all.edits()
	if err != nil {
		return Reply{}, err
	}
	u := row.Value
	u.Emails = slices.Clone(u.Emails)
	var active Opt[bool]
	for i := range edits {
		if err := edits[i].keepsID(string(in.ID)); err != nil {
			return Reply{}, err
		}
		if err := edits[i].apply(&u.SCIMUserAttributes, &active); err != nil {
			return Reply{}, err
		}
	}
	return tx.changeSCIMUser(row, &u, active, &in.SCIMBase, &in.SCIMSelection)
}
