package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// maxKey bounds the keys of workspaces and teams.
const maxKey = 10

// upperKey gives a key of a workspace or team in its stored form; false when it is
// none: 1 to 10 of A to Z and 0 to 9, in any case.
func upperKey(s string) (string, bool) {
	if s == "" || len(s) > maxKey {
		return "", false
	}
	for _, c := range []byte(s) {
		if !keyByte(c) {
			return "", false
		}
	}
	return strings.ToUpper(s), true
}

func keyByte(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}

// freeTeamKey refuses a team key that another team has.
func (v *View) freeTeamKey(key string) error {
	taken, err := v.Has(teamKeyIndex, storage.Key(nil).Str(key))
	if err != nil {
		return fmt.Errorf("look up a team's key: %w", err)
	}
	if taken {
		return Conflict("Another team has the key "+key+".", "Choose another key: it is unique in a workspace.")
	}
	return nil
}

// retireKey notes how far a team has counted under a key that it loses, so that
// whoever has the key next goes on from there (Decision 14).
func (tx *Tx) retireKey(team storage.ID, key string) error {
	n, err := tx.Counter(teamNumber, team)
	if err != nil {
		return err
	}
	before, err := tx.Number(retiredKeyTable, storage.Key(nil).Str(key))
	if err != nil {
		return fmt.Errorf("read a retired key: %w", err)
	}
	if n <= before {
		return nil
	}
	return tx.Writer().SetNumber(retiredKeyTable, storage.Key(nil).Str(key), n)
}

// takeKey has a team count on from the highest number ever given under a key.
func (tx *Tx) takeKey(team storage.ID, key string) error {
	retired, err := tx.Number(retiredKeyTable, storage.Key(nil).Str(key))
	if err != nil {
		return fmt.Errorf("read a retired key: %w", err)
	}
	n, err := tx.Counter(teamNumber, team)
	if err != nil || retired <= n {
		return err
	}
	return tx.SetCounter(teamNumber, team, retired)
}
