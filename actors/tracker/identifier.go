package tracker

import (
	"fmt"
	"strconv"
	"strings"

	"switchyard/storage"
)

// Identifiers such as "ENG-12" have rows of their own: identifierTable maps every
// identifier, present or former, to its issue; identifierByIssue lists an issue's
// former identifiers, so that they can be removed with the issue. The present one is
// stored in the issue itself.

// number gives an issue the next number of a team, and an identifier with it (Decision
// 14). The counter of numbers is never set back, so no number is used twice.
func (tx *Tx) number(t *Issue, team storage.ID, key string) error {
	n, err := tx.Next(teamNumber, team)
	if err != nil {
		return err
	}
	b := make([]byte, 0, 32)
	b = append(append(b, key...), '-')
	identifier := string(strconv.AppendUint(b, n, 10))
	t.Number, t.Identifier = &n, &identifier
	id := t.id()
	return tx.Writer().AddValue(identifierTable, storage.Key(b[:0]).Str(identifier), id[:])
}

// retireIdentifier adds the issue's present identifier to its former ones.
func (tx *Tx) retireIdentifier(t *Issue) error {
	return tx.Writer().SetValue(identifierByIssue, storage.Key(nil).ID(t.id()).Str(*t.Identifier), nil)
}

// forgetIdentifiers removes every identifier of an issue.
func (tx *Tx) forgetIdentifiers(t *Issue) error {
	id := t.id()
	w := tx.Writer()
	gone := []string{*t.Identifier}
	err := tx.Rows(identifierByIssue, id[:], nil, func(fields, _ []byte) (bool, error) {
		gone = append(gone, string(fields[len(id):len(fields)-1]))
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read an issue's former identifiers: %w", err)
	}
	for i, identifier := range gone {
		if err := w.DeleteValue(identifierTable, storage.Key(nil).Str(identifier)); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if err := w.DeleteValue(identifierByIssue, storage.Key(nil).ID(id).Str(identifier)); err != nil {
			return err
		}
	}
	return nil
}

// issueByIdentifier returns the issue with a present or former identifier,
// case-insensitively, or the zero ID.
func (v *View) issueByIdentifier(identifier string) (id storage.ID, err error) {
	value, err := v.Value(identifierTable, storage.Key(nil).Str(strings.ToUpper(identifier)), nil)
	if err != nil {
		return storage.ID{}, fmt.Errorf("look up an identifier: %w", err)
	}
	copy(id[:], value)
	return id, nil
}

// indexable reports whether an external string can be an index key: none of those
// stored contains a NUL byte.
func indexable(s string) bool { return strings.IndexByte(s, 0) < 0 }
