package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteTokenIn identifies a token.
type DeleteTokenIn struct {
	ID TokenID `path:"id"`
}

// DeleteToken ends a token: it is invalid once this is committed.
var DeleteToken = NewCommand[DeleteTokenIn, None]("DeleteToken", "Delete a workspace token", Needs{Level: Admin}, deleteToken, WithSpaceEffect(FreesSpace), Audits(auditToken))

func deleteToken(tx *Tx, in *DeleteTokenIn) (Reply, error) {
	if _, ok := storage.ParseID(in.ID); !ok {
		return Reply{}, NotFound("token")
	}
	there, err := tx.endToken(tokenKey(nil, in.ID))
	if err != nil {
		return Reply{}, err
	}
	if !there {
		return Reply{}, NotFound("token")
	}
	return Reply{Outcome: NoContent}, nil
}

// endToken removes a token by its key, with its grant, its last use and the console sessions
// that it opened; false if there is none.
func (tx *Tx) endToken(key storage.Key) (there bool, err error) {
	token, err := tokens.Get(tx, key)
	if err != nil {
		return false, fmt.Errorf("read a token: %w", err)
	}
	if token == nil {
		return false, nil
	}
	grant, err := tokenGrants.Get(tx, key)
	if err != nil {
		return false, fmt.Errorf("read a token's grant: %w", err)
	}
	if err := tokens.Delete(tx, token); err != nil {
		return false, err
	}
	if grant != nil {
		if err := tokenGrants.Delete(tx, grant); err != nil {
			return false, err
		}
		if err := tx.leaveConsoles(&grant.Value); err != nil {
			return false, err
		}
	}
	if err := tx.Writer().DeleteValue(tokenUseTable, key); err != nil {
		return false, err
	}
	return true, tx.countRecord(tokenTable, -1)
}
