package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// maxKey limits the length of keys of workspaces and teams.
const maxKey = 10

// upperKey returns a key of a workspace or team in its stored form, or false if it is
// not valid: 1 to 10 of A to Z and 0 to 9, in any case.
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

// freeTeamKey returns CONFLICT if another team has the key.
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

// retireKey records the last issue number of a team under a key that it loses. The next
// team with the key continues from there (Decision 14).
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

// takeKey makes a team continue from the highest number ever used under a key.
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
