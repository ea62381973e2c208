package tracker

import (
	"encoding/hex"
	"fmt"
	"time"

	"switchyard/storage"
)

// The directory holds what spans workspaces: slugs, and the memberships of users. It
// lives in a shard of its own, so no batch changes both the directory and a workspace.
// Changes of both consist of steps that can be repeated. The first step sets a timer,
// which completes the others after a crash between two:
//
// create:  reserve the slug -> found the workspace -> activate the entry
// delete:  mark the entry   -> erase the workspace -> forget the entry
// members: change + note    -> tell the directory  -> clear the note
//
// The workspace is the authority on its own existence and members; the directory is an
// index to workspaces.

// slugState is the state of a directory entry in its creation or deletion.
type slugState string

const (
	// slugReserved entries hold a slug for a workspace that may not exist yet.
	slugReserved slugState = "reserved"
	slugActive   slugState = "active"
	// slugDeleting entries hold the slug until the workspace is erased.
	slugDeleting slugState = "deleting"
)

const (
	// foundWithin is the time after its reservation in which a workspace may be
	// founded.
	foundWithin = 30 * time.Second
	// resolveAfter is the time after which a reservation is resolved. It is longer than
	// foundWithin, so no step that is still running can found the workspace then, as
	// long as the clocks of two owners differ by less than the difference.
	resolveAfter = time.Minute
	// eraseAfter is the time after which a timer takes over a deletion.
	eraseAfter = 15 * time.Second
)

// Timer kinds of the directory; their subject is the workspace.
const (
	timerResolve = "directory.resolve"
	timerErase   = "directory.erase"
)

// directoryEntry is the directory's record of a workspace.
type directoryEntry struct {
	Workspace WorkspaceID `json:"workspace"`
	Slug      string      `json:"slug"`
	State     slugState   `json:"state"`
	Owner     UserID      `json:"owner"`
	CreatedAt Timestamp   `json:"createdAt"`
	// Answer is the key of the reservation's stored answer, in hexadecimal. The answer
	// is removed with a reservation that is released.
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

var _ = declareTable(&directory)

func workspaceKey(k storage.Key, id WorkspaceID) storage.Key {
	raw, _ := storage.ParseID(id)
	return k.DescID(raw)
}

func (v *View) entry(id WorkspaceID) (*storage.Row[directoryEntry], error) {
	row, err := directory.Get(v, workspaceKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	return row, nil
}

// entryBySlug returns the entry that holds a slug, or nil if the slug is free.
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

// setEntryState changes the state of an entry.
func (tx *Tx) setEntryState(row *storage.Row[directoryEntry], state slugState) error {
	e := row.Value
	e.State = state
	if _, err := directory.Update(tx, row, &e); err != nil {
		return fmt.Errorf("change the directory: %w", err)
	}
	return nil
}

// directoryStep is the input of steps that concern one workspace.
type directoryStep struct {
	Workspace WorkspaceID `json:"workspace"`
}

// about implements aboutWorkspace for every input that embeds a step.
func (s directoryStep) about() storage.ID { return s.id() }

func (s directoryStep) id() storage.ID {
	id, _ := storage.ParseID(s.Workspace)
	return id
}

// answerName returns the hexadecimal key of the stored answer to req, or "" without an
// idempotency key.
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

// dropAnswer removes an answer by its name, so that a repeat of the request runs again.
func (tx *Tx) dropAnswer(name string) error {
	key, ok := parseAnswerName(name)
	if !ok {
		return nil // the request had no key
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
