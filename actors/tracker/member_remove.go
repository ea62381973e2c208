package tracker

import (
	"fmt"

	"switchyard/storage"
)

// MemberIn names a member.
type MemberIn struct {
	UserID UserID `path:"userId"`
}

// RemoveMember takes a member out of the workspace and its teams, and ends the
// credentials that they made (Decision 11).
var RemoveMember = NewWorkflow[MemberIn, None]("RemoveMember", "Remove a member", Needs{Level: Admin}, func(f Flow, in *MemberIn) (Reply, error) {
	return memberFlow(f, removeMemberOp, in)
}, WithRoom(Frees))

var removeMemberOp = NewCommand[MemberIn, None]("RemoveMemberHere", "Remove a member", Needs{Level: Admin}, removeMember, WithRoom(Frees))

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
	if _, err := tx.dropMember(row); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, nil
}

// dropMember takes somebody who is not the owner out of the workspace and its
// teams, which it gives, and ends their credentials.
func (tx *Tx) dropMember(row *storage.Row[Member]) (joined []storage.ID, err error) {
	who := row.Value.UserID
	if err := eachTeamOf(tx.Reader(), who, func(team storage.ID) { joined = append(joined, team) }); err != nil {
		return nil, err
	}
	for _, team := range joined {
		if _, err := tx.leaveTeam(team, who); err != nil {
			return nil, err
		}
	}
	if err := tx.endCredentialsOf(who); err != nil {
		return nil, err
	}
	if err := members.Delete(tx, row); err != nil {
		return nil, fmt.Errorf("remove a member: %w", err)
	}
	// Added again by their id they are a stranger whose credentials are their own.
	if err := tx.Writer().DeleteValue(issuedUserTable, memberKey(nil, who)); err != nil {
		return nil, err
	}
	if err := tx.tally(memberTable, -1); err != nil {
		return nil, err
	}
	return joined, tx.noteMember(who, false)
}
