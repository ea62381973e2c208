package tracker

import (
	"fmt"

	"switchyard/storage"
)

// MemberIn names a member.
type MemberIn struct {
	UserID UserID `path:"userId"`
}

// RemoveMember takes a member out of the workspace and its teams. Tokens that act
// for them are nobody's here from then on.
var RemoveMember = NewWorkflow[MemberIn, None]("RemoveMember", "Remove a member", Needs{Level: Admin}, func(f Flow, in *MemberIn) (Reply, error) {
	return memberFlow(f, removeMemberOp, in)
})

var removeMemberOp = NewCommand[MemberIn, None]("RemoveMemberHere", "Remove a member", Needs{Level: Admin}, removeMember)

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
	var joined []storage.ID
	if err := eachTeamOf(tx.Reader(), in.UserID, func(team storage.ID) { joined = append(joined, team) }); err != nil {
		return Reply{}, err
	}
	for _, team := range joined {
		if _, err := tx.leaveTeam(team, in.UserID); err != nil {
			return Reply{}, err
		}
	}
	if err := members.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("remove a member: %w", err)
	}
	// Added again by their id they are a stranger whose credentials are their own.
	if err := tx.Writer().DeleteValue(issuedUserTable, memberKey(nil, in.UserID)); err != nil {
		return Reply{}, err
	}
	if err := tx.tally(memberTable, -1); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.noteMember(in.UserID, false)
}
