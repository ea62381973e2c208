package tracker

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

// Sessions of an import may wait for something that is over. Owners and admins change the workspace while lines
// are still to come: they end a session, or close an issue, before the line comes of a session that waits for
// it. A file that an earlier version exported between two batches of a release has such sessions, too. A timer
// moves them on once the import is done.

// timerImportedWaits goes through the sessions that wait, once an import is done. Its subject is empty, or the
// place from which on it goes: the name of one of importedWaits and a key of its index in hexadecimal, or only an
// issue of the first one, as earlier versions write it.
const timerImportedWaits = "import.ready"

// importedWaits are the indexes of sessions that wait. settle moves the sessions of the first entry on if their
// wait is over, and returns the key from which on to continue.
var importedWaits = [...]struct {
	name   string
	index  storage.TableID
	settle func(tx *Tx, key []byte) (next []byte, err error)
}{
	{"issue", sessionWhenReady, (*Tx).settleImportedIssue},
	{"predecessor", sessionByPredecessor, (*Tx).settleImportedPredecessor},
	{"condition", sessionWaits, (*Tx).settleImportedCondition},
}

// resumeWaits sets timerImportedWaits if sessions wait.
func (tx *Tx) resumeWaits() error {
	for i := range importedWaits {
		some, err := tx.any(importedWaits[i].index)
		if err != nil {
			return err
		}
		if some {
			return tx.SetTimerAtOnce(timerImportedWaits, "")
		}
	}
	return nil
}

// maxImportedWaits is the number of entries that one command looks at.
const maxImportedWaits = 200

// settleImportedOp moves the sessions on that an import has left waiting for something that is over.
var settleImportedOp = NewCommand[TimerIn, None]("SettleImported", "Move on the imported sessions whose wait is over", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	stage, at := importedPlace(in.Subject)
	for looked := 0; stage < len(importedWaits); looked++ {
		w := &importedWaits[stage]
		keys, err := tx.rowKeysFrom(w.index, nil, at, 1)
		if err != nil {
			return Reply{}, err
		}
		if len(keys) == 0 {
			stage, at = stage+1, nil
			continue
		}
		if looked >= maxImportedWaits || tx.followers.moved >= maxUnblockedSessions || tx.written() > maxFollowed {
			return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerImportedWaits, w.name+" "+hex.EncodeToString(keys[0]))
		}
		if at, err = w.settle(tx, keys[0]); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}, Prompt)

// importedPlace parses a subject of timerImportedWaits. An unknown one is the begin.
func importedPlace(subject string) (stage int, at []byte) {
	if issue, ok := storage.ParseID(subject); ok {
		return 0, issue[:]
	}
	name, place, _ := strings.Cut(subject, " ")
	for i := range importedWaits {
		if key, err := hex.DecodeString(place); err == nil && importedWaits[i].name == name {
			return i, key
		}
	}
	return 0, nil
}

// settleImportedIssue moves the sessions on that wait for an issue which nothing blocks.
func (tx *Tx) settleImportedIssue(key []byte) (next []byte, err error) {
	issue := storage.ID(key[:len(storage.ID{})])
	return append(issue[:], 0xff), tx.settleUnblocked(issue) // behind all entries of the issue
}

// settleImportedPredecessor moves the sessions on that are queued after one which has ended.
func (tx *Tx) settleImportedPredecessor(key []byte) (next []byte, err error) {
	before := storage.ID(key[:len(storage.ID{})])
	row, err := sessions.Get(tx, sessionKey(before))
	if err == nil && row != nil && row.Value.Status.Ended() {
		err = tx.sessionHasEnded(&row.Value)
	}
	return append(before[:], bytes.Repeat([]byte{0xff}, storage.ListedKeyLen+1)...), err // behind all entries of it
}

// settleImportedCondition notes the conditions that are met of a session which waits for them.
func (tx *Tx) settleImportedCondition(key []byte) (next []byte, err error) {
	next = append(slices.Clip(key), 0)
	row, err := sessions.Get(tx, key[1+len(storage.ID{}):])
	if err == nil && (row == nil || row.Value.Inner.Wait == nil) {
		err = fmt.Errorf("the index names a session that does not wait")
	}
	if err != nil {
		return nil, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return nil, err
	}
	var met []int
	w := c.s.Inner.Wait
	for i := range w.Conditions {
		if w.Met[i] || w.Conditions[i].After != "" { // times have a timer
			continue
		}
		is, err := tx.isMet(&c.s, &w.Conditions[i])
		if err != nil {
			return nil, err
		}
		if is {
			met = append(met, i)
		}
	}
	if len(met) == 0 {
		return next, nil
	}
	tx.followers.moved++
	if err := c.meet(met); err != nil {
		return nil, err
	}
	_, err = c.save()
	return next, err
}
