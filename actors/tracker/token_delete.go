package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteTokenIn names a token.
type DeleteTokenIn struct {
	ID TokenID `path:"id"`
}

// DeleteToken ends a token: it is good for nothing once this is committed.
var DeleteToken = NewCommand[DeleteTokenIn, None]("DeleteToken", "Delete a workspace token", Needs{Level: Admin}, deleteToken)

func deleteToken(tx *Tx, in *DeleteTokenIn) (Reply, error) {
	if _, ok := storage.ParseID(in.ID); !ok {
		return Reply{}, NotFound("token")
	}
	key := tokenKey(nil, in.ID)
	token, err := tokens.Get(tx, key)
	if err != nil {
		return Reply{}, fmt.Errorf("read a token: %w", err)
	}
	if token == nil {
		return Reply{}, NotFound("token")
	}
	grant, err := tokenGrants.Get(tx, key)
	if err != nil {
		return Reply{}, fmt.Errorf("read a token's grant: %w", err)
	}
	if err := tokens.Delete(tx, token); err != nil {
		return Reply{}, err
	}
	if grant != nil {
		if err := tokenGrants.Delete(tx, grant); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.tally(tokenTable, -1)
}
