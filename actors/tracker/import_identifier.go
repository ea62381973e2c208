package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchyard/storage"
)

// maxImportNumber is the highest number that an issue of a file can have. It leaves room for the
// numbers of new issues.
const maxImportNumber = 1 << 53

// takeRetiredKey keeps the highest number that was used under a key. An issue before the line may
// have a higher one.
func takeRetiredKey(im *importing, data []byte) error {
	var k transferredKey
	if err := im.decode(data, &k); err != nil {
		return err
	}
	if upper, ok := upperKey(k.Key); !ok || upper != k.Key || k.LastNumber > maxImportNumber {
		return im.refuse("data.key must be 1 to 10 of A to Z and 0 to 9, and data.lastNumber at most %d.", uint64(maxImportNumber))
	}
	return im.retireNumber(k.Key, k.LastNumber)
}

func takeTeamNumber(im *importing, data []byte) error {
	var n transferredNumber
	if err := im.decode(data, &n); err != nil {
		return err
	}
	team, ok := storage.ParseID(n.TeamID)
	if !ok || n.LastNumber > maxImportNumber {
		return im.refuse("data.teamId must be the id of a team, and data.lastNumber at most %d.", uint64(maxImportNumber))
	}
	return im.countTo(team, n.LastNumber)
}

// countTo makes a team go on behind a number.
func (im *importing) countTo(team storage.ID, n uint64) error {
	last, err := im.tx.Counter(teamNumber, team)
	if err != nil || n <= last {
		return err
	}
	return im.tx.SetCounter(teamNumber, team, n)
}

// retireNumber makes the next team that gets a key go on behind a number.
func (im *importing) retireNumber(key string, n uint64) error {
	before, err := im.tx.Number(retiredKeyTable, storage.Key(nil).Str(key))
	if err != nil {
		return fmt.Errorf("read a retired key: %w", err)
	}
	if n <= before {
		return nil
	}
	return im.tx.Writer().SetNumber(retiredKeyTable, storage.Key(nil).Str(key), n)
}

// maxImportedKeys is the number of keys that the identifiers of a team's issues can have: those that
// the team has had.
const maxImportedKeys = 1000

// numberedOnce refuses an issue with the number of another one of its team. Their identifiers may
// have unlike keys, since an identifier stays when the key of its team is changed.
func (im *importing) numberedOnce(t *Issue, team storage.ID, key string) error {
	of := TeamID(team.String())
	keys := im.record.Keys[of]
	for _, other := range keys {
		if other == key {
			continue
		}
		id, err := im.tx.issueByIdentifier(fmt.Sprintf("%s-%d", other, *t.Number))
		if err != nil {
			return err
		}
		row, err := issues.Get(im.tx, issueKey(id))
		if err != nil {
			return fmt.Errorf("read an issue: %w", err)
		}
		if row != nil && row.Team == team && *row.Value.Number == *t.Number {
			return im.refuse("data.number: The team has it for %s.", *row.Value.Identifier)
		}
	}
	if slices.Contains(keys, key) {
		return nil
	}
	if len(keys) >= maxImportedKeys {
		return im.refuse("data.identifier: The issues of a team can have identifiers with at most %d keys.", maxImportedKeys)
	}
	if im.record.Keys == nil {
		im.record.Keys = map[TeamID][]string{}
	}
	im.record.Keys[of] = append(slices.Clone(keys), key)
	return nil
}

// noteNumber keeps the number of an identifier from being given again: by the team that has the
// key, or else by the next team that gets it.
func (im *importing) noteNumber(key string, n uint64) error {
	pk, err := teams.Lookup(im.tx, teamKeyIndex, storage.Key(nil).Str(key))
	if err != nil {
		return fmt.Errorf("look up a team's key: %w", err)
	}
	if pk == nil {
		return im.retireNumber(key, n)
	}
	row, err := im.tx.readTeam(pk)
	if err != nil || row == nil {
		return err
	}
	return im.countTo(row.Team, n)
}

func takeFormerIdentifier(im *importing, data []byte) error {
	var f transferredIdentifier
	if err := im.decode(data, &f); err != nil {
		return err
	}
	row, err := im.needIssue(f.IssueID)
	if err != nil {
		return err
	}
	key, text, ok := strings.Cut(f.Identifier, "-")
	number, err := strconv.ParseUint(text, 10, 64)
	if upper, valid := upperKey(key); !ok || err != nil || !valid || upper != key || number == 0 || number > maxImportNumber || strconv.FormatUint(number, 10) != text {
		return im.refuse("data.identifier must be a team's key and a number.")
	}
	identifier := storage.Key(nil).Str(f.Identifier)
	if known, err := im.tx.Has(identifierTable, identifier); err != nil || known {
		if err == nil {
			err = im.refuse("The identifier %s is taken.", f.Identifier)
		}
		return err
	}
	if err := im.noteNumber(key, number); err != nil {
		return err
	}
	id := row.Value.id()
	if err := im.tx.Writer().AddValue(identifierTable, identifier, id[:]); err != nil {
		return err
	}
	return im.tx.Writer().AddValue(identifierByIssue, storage.Key(nil).ID(id).Str(f.Identifier), nil)
}
