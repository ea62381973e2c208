package tracker

import "fmt"

// AccessGrantIn identifies a grant by its issue and actor.
type AccessGrantIn struct {
	ID      string `path:"id"`
	ActorID string `path:"actorId"`
}

// RemoveAccessGrant removes an actor's grant for an issue. Without its last grant the
// issue is open to the workspace again.
var RemoveAccessGrant = NewCommand[AccessGrantIn, None]("RemoveAccessGrant", "Remove an access grant", Needs{Write, "issues"}, removeAccessGrant, WithSpaceEffect(FreesSpace), Refuses(CodeConflict), Audits(auditAccess))

func removeAccessGrant(tx *Tx, in *AccessGrantIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	id := row.Value.id()
	grant, err := accessGrants.Get(tx, accessKey(nil, id, in.ActorID))
	if err != nil {
		return Reply{}, fmt.Errorf("read a grant: %w", err)
	}
	if grant == nil {
		return Reply{}, NotFound("grant")
	}
	if err := accessGrants.Delete(tx, grant); err != nil {
		return Reply{}, fmt.Errorf("remove a grant: %w", err)
	}
	left, err := tx.countGrants(id)
	if err == nil && left == 0 {
		if err = tx.restrict(row, false); err == nil {
			err = tx.wakeForIssue(id)
		}
	}
	return Reply{Outcome: NoContent}, err
}
