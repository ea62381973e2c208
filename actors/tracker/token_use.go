package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// TokenUseNoted is how old lastUsedAt may be: the use of a token is recorded at most
// once in this time.
const TokenUseNoted = time.Hour

// TokenUse records that a workspace token was used.
type TokenUse struct {
	ID storage.ID `json:"id"`
	At Timestamp  `json:"at"`
}

// TokenUses are uses of a workspace's tokens.
type TokenUses struct {
	Uses []TokenUse `json:"uses"`
}

// NoteTokenUses records when tokens were used, in rows of their own: the tokens
// themselves don't change, so cached callers stay valid.
var NoteTokenUses = NewCommand[TokenUses, None]("NoteTokenUses", "Note when tokens were used", Needs{}, func(tx *Tx, in *TokenUses) (Reply, error) {
	for _, use := range in.Uses {
		key := storage.Key(nil).DescID(use.ID)
		there, err := tx.Has(tokenTable, key)
		if err != nil {
			return Reply{}, fmt.Errorf("look for a token: %w", err)
		}
		last, err := tokenUsed(&tx.View.View, use.ID)
		if err != nil {
			return Reply{}, err
		}
		at := use.At.Time()
		if !there || at.Sub(last) < TokenUseNoted {
			continue
		}
		if err := tx.Writer().SetValue(tokenUseTable, key, binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
})

// tokenUsed returns the time of a token's last recorded use; zero for never.
func tokenUsed(v *storage.View, id storage.ID) (time.Time, error) {
	value, err := v.Value(tokenUseTable, storage.Key(nil).DescID(id), nil)
	if err != nil || value == nil {
		return time.Time{}, err
	}
	return parseTokenUse(value)
}

func parseTokenUse(value []byte) (time.Time, error) {
	if len(value) != 8 {
		return time.Time{}, fmt.Errorf("%w: use of a token in %d bytes", storage.ErrFormat, len(value))
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(value))).UTC(), nil
}

// checkTokenUse checks that the token of a recorded use exists.
func checkTokenUse(v *storage.View, fields, value []byte) error {
	if _, err := parseTokenUse(value); err != nil {
		return err
	}
	there, err := v.Has(tokenTable, fields)
	if err == nil && !there {
		err = fmt.Errorf("there is no such token")
	}
	return err
}
