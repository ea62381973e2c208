package tracker

import (
	"cmp"
	"fmt"
)

// PutAccessGrantIn is the issue and the actor of a grant.
type PutAccessGrantIn struct {
	ID        string      `path:"id"`
	ActorID   string      `json:"actorId" rules:"required,min=1,max=255"`
	ActorType GranteeType `json:"actorType" default:"user"`
}

// PutAccessGrant lets an actor see an issue. With the first grant the issue becomes
// restricted: only admins and the actors of its grants see it, so it may be hidden from
// the caller then. A repeat with another actorType updates the grant, which keeps its id
// and createdAt.
var PutAccessGrant = NewCommand[PutAccessGrantIn, AccessGrant]("PutAccessGrant", "Grant access to an issue", Needs{Write, "issues"}, putAccessGrant, Audits(auditAccess))

func putAccessGrant(tx *Tx, in *PutAccessGrantIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	id, kind := row.Value.id(), cmp.Or(in.ActorType, GranteeUser)
	old, err := accessGrants.Get(tx, accessKey(nil, id, in.ActorID))
	if err != nil {
		return Reply{}, fmt.Errorf("read a grant: %w", err)
	}
	if old != nil {
		grant := old.Value
		if grant.ActorType == kind {
			return jsonReply(Done, grant)
		}
		grant.ActorType = kind
		body, err := accessGrants.Update(tx, old, &grant)
		if err != nil {
			return Reply{}, fmt.Errorf("change a grant: %w", err)
		}
		return Reply{Body: body}, tx.wakeForIssue(id)
	}
	n, err := tx.countGrants(id)
	if err != nil {
		return Reply{}, err
	}
	if n >= maxGrants {
		return Reply{}, Conflict(fmt.Sprintf("The issue has %d grants, the most there can be.", n), "Grant access to a team, or remove some of the grants first.")
	}
	made, err := tx.NewID()
	if err != nil {
		return Reply{}, fmt.Errorf("make a grant's id: %w", err)
	}
	body, err := accessGrants.Insert(tx, &AccessGrant{
		ID: made.String(), OrganizationID: row.Value.OrganizationID, IssueID: row.Value.ID,
		ActorID: in.ActorID, ActorType: kind, CreatedAt: At(tx.now),
	})
	if err != nil {
		return Reply{}, fmt.Errorf("add a grant: %w", err)
	}
	if n == 0 {
		return Reply{Body: body}, tx.restrict(row, true)
	}
	return Reply{Body: body}, tx.wakeForIssue(id)
}
