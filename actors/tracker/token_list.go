package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// TokenList is the answer to ListTokens.
type TokenList struct {
	Tokens     []Token `json:"tokens"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListTokens lists the workspace's tokens, newest first, without their secrets.
var ListTokens = NewQuery[PageIn, TokenList]("ListTokens", "List workspace tokens", Needs{Level: Admin}, listTokens, FromSnapshot)

func listTokens(v *View, in *PageIn) (Reply, error) {
	after, err := parseCursorKey(in.Cursor, tokenTable, v.Workspace())
	if err != nil {
		return Reply{}, err
	}
	p := newPage(v.Buf, "tokens", in.Limit)
	err = tokens.Scan(v, nil, after, func(pk []byte, rec storage.Record) (bool, error) {
		shown, err := v.shownToken(pk, rec)
		if err != nil {
			return false, err
		}
		return p.add(pk, shown), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list tokens: %w", err)
	}
	return p.reply(tokenTable, v.Workspace()), nil
}

// shownToken returns the JSON of a stored token in the form that clients see.
func (v *View) shownToken(pk []byte, rec storage.Record) ([]byte, error) {
	t, err := tokens.Decode(rec)
	if err != nil {
		return nil, err
	}
	grant, err := tokenGrants.Get(v, pk)
	if err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, fmt.Errorf("token %s: its grant is not there", t.Value.ID)
	}
	shown := t.Value.shown(&grant.Value)
	id, _ := storage.ParseID(t.Value.ID)
	used, err := tokenUsed(&v.View, id)
	if err != nil {
		return nil, err
	}
	if !used.IsZero() {
		at := At(used)
		shown.LastUsedAt = &at
	}
	return json.MarshalWithOption(&shown, json.DisableHTMLEscape())
}

// listRecords lists the records of a table in the order of their keys; show, if not
// nil, selects them.
func listRecords[T any](v *View, in *PageIn, name string, table *storage.Table[T], show func(storage.Record) bool) (Reply, error) {
	after, err := parseCursorKey(in.Cursor, table.ID, v.Workspace())
	if err != nil {
		return Reply{}, err
	}
	p := newPage(v.Buf, name, in.Limit)
	err = table.Scan(v, nil, after, func(pk []byte, rec storage.Record) (bool, error) {
		return show != nil && !show(rec) || p.add(pk, rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list %s: %w", name, err)
	}
	return p.reply(table.ID, v.Workspace()), nil
}
