package tracker

import (
	"encoding/hex"
	"fmt"
	"time"

	"switchyard/storage"
)

// The directory tells what spans workspaces: which slug names which, and who is a
// member of which. It lives in its own shard, so no batch holds both it and a
// workspace. Every change of both is made of steps, each of which can be repeated,
// and the first of them leaves a timer that sees to the rest if whoever runs the
// steps dies between two:
//
//	create:  reserve the slug -> found the workspace -> activate the entry
//	delete:  mark the entry   -> erase the workspace -> forget the entry
//	members: change + note    -> tell the directory  -> clear the note
//
// The workspace is the authority on its own existence and members; the directory
// only says where to look.

// slugState says how far a directory entry's creation or deletion has come.
type slugState string

const (
	// slugReserved entries hold a slug for a workspace that may not be there yet.
	slugReserved slugState = "reserved"
	slugActive   slugState = "active"
	// slugDeleting entries hold the slug until every trace is gone.
	slugDeleting slugState = "deleting"
)

const (
	// foundWithin is how long after its reservation a workspace may be founded.
	foundWithin = 30 * time.Second
	// resolveAfter is when a reservation is looked into. It lies so far behind
	// foundWithin that no step still on its way can found the workspace then, even
	// where the clocks of two owners differ by less than the time between.
	resolveAfter = time.Minute
	// eraseAfter is when a deletion is taken up again.
	eraseAfter = 15 * time.Second
)

// Timer kinds of the directory; their subject is the workspace.
const (
	timerResolve = "directory.resolve"
	timerErase   = "directory.erase"
)

// directoryEntry is a workspace's place in the directory.
type directoryEntry struct {
	Workspace WorkspaceID `json:"workspace"`
	Slug      string      `json:"slug"`
	State     slugState   `json:"state"`
	Owner     UserID      `json:"owner"`
	CreatedAt Timestamp   `json:"createdAt"`
	// Answer names the record of the reservation's answer, in hexadecimal, so that
	// it goes with a reservation that comes to nothing.
	Answer string `json:"answer,omitempty"`
}

var directory = storage.Table[directoryEntry]{
	ID:   directoryTable,
	Name: "directory",
	Key:  func(k storage.Key, e *directoryEntry) storage.Key { return workspaceKey(k, e.Workspace) },
	Indexes: []storage.Index[directoryEntry]{{
		ID:      directoryBySlug,
		Name:    "slug",
		Unique:  true,
		Entries: func(e *storage.Entries, d *directoryEntry) { e.Add(e.Key().Str(d.Slug)) },
	}, {
		ID:      directoryByOwner,
		Name:    "owner",
		Entries: func(e *storage.Entries, d *directoryEntry) { e.Add(memberKey(e.Key(), d.Owner)) },
	}},
}

func workspaceKey(k storage.Key, id WorkspaceID) storage.Key {
	raw, _ := storage.ParseID(id)
	return k.Newest(raw)
}

func (v *View) entry(id WorkspaceID) (*storage.Row[directoryEntry], error) {
	row, err := directory.Get(v, workspaceKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	return row, nil
}

// entryBySlug finds the entry that holds a slug; nil when it is free.
func (v *View) entryBySlug(slug string) (*storage.Row[directoryEntry], error) {
	if !indexable(slug) {
		return nil, nil
	}
	pk, err := directory.Lookup(v, directoryBySlug, storage.Key(nil).Str(slug))
	if err != nil || pk == nil {
		return nil, err
	}
	row, err := directory.Get(v, pk)
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	return row, nil
}

// setEntryState moves an entry on.
func (tx *Tx) setEntryState(row *storage.Row[directoryEntry], state slugState) error {
	e := row.Value
	e.State = state
	if _, err := directory.Update(tx, row, &e); err != nil {
		return fmt.Errorf("change the directory: %w", err)
	}
	return nil
}

// directoryStep is the input of the steps that are about one workspace.
type directoryStep struct {
	Workspace WorkspaceID `json:"workspace"`
}

// about implements aboutWorkspace, also for the inputs that embed a step.
func (s directoryStep) about() storage.ID { return s.id() }

func (s directoryStep) id() storage.ID {
	id, _ := storage.ParseID(s.Workspace)
	return id
}

// answerName is the name of the record under which an answer to req is kept in
// the workspace that remembers it; "" without an idempotency key.
func answerName(req *Request) string {
	if req.Idempotency == nil {
		return ""
	}
	key := newAnswerKey(req.Caller.Token, req.Idempotency.Key)
	return hex.EncodeToString(key[:])
}

func parseAnswerName(name string) (answerKey, bool) {
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != len(answerKey{}) {
		return answerKey{}, false
	}
	return answerKey(raw), true
}

// dropAnswer forgets an answer by its name, so that the request is carried out
// afresh when it is repeated.
func (tx *Tx) dropAnswer(name string) error {
	key, ok := parseAnswerName(name)
	if !ok {
		return nil // there was no key
	}
	a, err := tx.answer(key)
	if err != nil || a == nil {
		return err
	}
	if err := tx.Writer().DeleteValue(idempotencyByAge, ageKey(a.at, key)); err != nil {
		return err
	}
	return tx.Writer().DeleteValue(idempotencyTable, key[:])
}
