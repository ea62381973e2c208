package tracker

import "fmt"

// PatchMemberIn changes a member's role. An absent role stays as it is.
type PatchMemberIn struct {
	UserID UserID `path:"userId"`
	Role   Role   `json:"role" enum:"admin,member,guest"`
}

// PatchMember changes a member's role. The owner's role can't be changed.
var PatchMember = NewCommand[PatchMemberIn, Member]("PatchMember", "Change a member's role", Needs{Level: Admin}, patchMember, Audits(auditMember))

func patchMember(tx *Tx, in *PatchMemberIn) (Reply, error) {
	row, err := tx.member(in.UserID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("member")
	}
	m := row.Value
	if in.Role == "" {
		return jsonReply(Done, &m)
	}
	if m.Role == RoleOwner {
		return Reply{}, Conflict("The owner's role can't be changed.", "Give roles to the workspace's other members.")
	}
	if m.Role == in.Role {
		return jsonReply(Done, &m)
	}
	m.Role, m.UpdatedAt = in.Role, At(tx.now)
	body, err := members.Update(tx, row, &m)
	if err != nil {
		return Reply{}, fmt.Errorf("change a member: %w", err)
	}
	tx.wakeClaimers() // an admin sees every issue
	return Reply{Body: body}, nil
}
