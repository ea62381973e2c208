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
	p, err := newPage(v.Buf, pageSpec{name: "tokens", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(v.Workspace(), "tokens")})
	if err != nil {
		return Reply{}, err
	}
	err = tokens.Scan(v, nil, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		shown, err := v.shownToken(pk, rec)
		if err != nil {
			return false, err
		}
		return p.add(pk, shown), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list tokens: %w", err)
	}
	return p.reply(), nil
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
