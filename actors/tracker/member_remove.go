package tracker

import (
	"fmt"

	"switchyard/storage"
)

// MemberIn identifies a member.
type MemberIn struct {
	UserID UserID `path:"userId"`
}

// RemoveMember removes a member from the workspace and its teams, and ends the
// credentials that the member made (Decision 11).
var RemoveMember = NewWorkflow[MemberIn, None]("RemoveMember", "Remove a member", Needs{Level: Admin}, func(f Flow, in *MemberIn) (Reply, error) {
	return memberFlow(f, removeMemberOp, in)
}, WithSpaceEffect(FreesSpace), Refuses(CodeConflict), Audits(auditMember))

var removeMemberOp = NewCommand[MemberIn, None]("RemoveMemberHere", "Remove a member", Needs{Level: Admin}, removeMember, WithSpaceEffect(FreesSpace), Audits(auditMember))

func removeMember(tx *Tx, in *MemberIn) (Reply, error) {
	row, err := tx.member(in.UserID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("member")
	}
	if row.Value.Role == RoleOwner {
		return Reply{}, Conflict("The owner can't be removed.", "Delete the workspace if it is to end.")
	}
	if _, more, err := tx.dropMember(row); err != nil || more {
		return Reply{More: more}, err
	}
	return Reply{Outcome: NoContent}, nil
}

// dropMember removes a member who is not the owner from the workspace and from its
// teams, which it returns, and ends the member's credentials. A member may have made more of
// these than fit into one batch: dropMember reports whether some are left. The member goes
// after them.
func (tx *Tx) dropMember(row *storage.Row[Member]) (joined []storage.ID, more bool, err error) {
	who := row.Value.UserID
	if more, err := tx.endCredentialsOf(who, tx.newWorkBudget()); err != nil || more {
		return nil, more, err
	}
	if err := eachTeamOf(tx.Reader(), who, func(team storage.ID) { joined = append(joined, team) }); err != nil {
		return nil, false, err
	}
	for _, team := range joined {
		if _, err := tx.leaveTeam(team, who); err != nil {
			return nil, false, err
		}
	}
	// A console session that is stored here is good for the member's other workspaces, too, and
	// would be out of reach for EndConsole.
	if _, err := tx.endConsoles(ActorUser, string(who)); err != nil {
		return nil, false, err
	}
	if err := members.Delete(tx, row); err != nil {
		return nil, false, fmt.Errorf("remove a member: %w", err)
	}
	// A user who is added again by id is treated as a stranger, whose credentials the
	// workspace can't make.
	if err := tx.Writer().DeleteValue(issuedUserTable, memberKey(nil, who)); err != nil {
		return nil, false, err
	}
	if err := tx.countRecord(memberTable, -1); err != nil {
		return nil, false, err
	}
	return joined, false, tx.noteMember(who, false)
}
