package tracker

import (
	"fmt"

	"switchyard/storage"
)

// TokenList is the answer to ListTokens.
type TokenList struct {
	Tokens     []Token `json:"tokens"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListTokens lists the workspace's tokens, newest first, without their secrets.
var ListTokens = NewQuery[PageIn, TokenList]("ListTokens", "List workspace tokens", Needs{Level: Admin}, listTokens, OneMoment)

func listTokens(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "tokens", &tokens, nil)
}

// listRecords lists the records of a table in the order of their keys, those that
// show, when given, lets through.
func listRecords[T any](v *View, in *PageIn, name string, table *storage.Table[T], show func(storage.Record) bool) (Reply, error) {
	after, err := parsePlace(in.Cursor, table.ID, v.Workspace())
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
