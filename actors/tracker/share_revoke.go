package tracker

import "fmt"

// ShareIn identifies a share by its issue and token.
type ShareIn struct {
	ID    string `path:"id"`
	Token string `path:"token"`
}

// RevokeShare ends a share. The answer for an expired share is NOT_FOUND.
var RevokeShare = NewCommand[ShareIn, None]("RevokeShare", "Revoke an issue's share", Needs{Write, "issues"}, revokeShare, WithSpaceEffect(FreesSpace), Refuses(CodeConflict), Audits(auditShare))

func revokeShare(tx *Tx, in *ShareIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	share, err := tx.activeShare(row.Value.id())
	if err != nil {
		return Reply{}, err
	}
	if share == nil || !share.Value.is(in.Token) {
		return Reply{}, NotFound("share")
	}
	if err := shares.Delete(tx, share); err != nil {
		return Reply{}, fmt.Errorf("revoke a share: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}
