package tracker

import (
	"encoding/binary"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// appendJSON appends the JSON of a value.
func appendJSON(b []byte, v any) ([]byte, error) {
	text, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode a line: %w", err)
	}
	return append(b, text...), nil
}

var transferSettings = recordKind("settings", &settingsRows, atFirst)

// transferredKey is a team key that was used before, with the highest number of an issue
// under it.
type transferredKey struct {
	Key        string `json:"key"`
	LastNumber uint64 `json:"lastNumber"`
}

var transferRetiredKeys = rowKind("retired_team_key", retiredKeyTable, atFirst, func(b, key, value []byte) ([]byte, error) {
	text, _, ok := storage.CutStr(key)
	if !ok || len(value) != 8 {
		return nil, fmt.Errorf("%w: retired key of %d bytes", storage.ErrFormat, len(key))
	}
	return appendJSON(b, transferredKey{text, binary.BigEndian.Uint64(value)})
})

// transferredNumber is the highest number that a team has given to an issue.
type transferredNumber struct {
	TeamID     TeamID `json:"teamId"`
	LastNumber uint64 `json:"lastNumber"`
}

var transferTeamNumbers = rowKind("team_number", teamNumber, byOldestFirst, func(b, key, value []byte) ([]byte, error) {
	if len(key) != len(storage.ID{}) || len(value) != 8 {
		return nil, fmt.Errorf("%w: number of a team of %d bytes", storage.ErrFormat, len(key))
	}
	return appendJSON(b, transferredNumber{TeamID(storage.ID(key).String()), binary.BigEndian.Uint64(value)})
})

// transferTokens shows tokens as lists do, but for the time of their last use: an export
// is such a use.
var transferTokens = transferKind{
	name: "token", tables: []storage.TableID{tokenTable, grantTable, tokenUseTable}, places: placesOf(tokenTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		t, err := tokens.Get(v, key)
		if err != nil || t == nil {
			return nil, goneFrom("a token", err)
		}
		g, err := tokenGrants.Get(v, key)
		if err != nil || g == nil {
			return nil, goneFrom("a token's grant", err)
		}
		return appendJSON(b, t.Value.shown(&g.Value))
	},
}

var transferSCIMConnections = transferKind{
	name: "scim_connection", tables: []storage.TableID{scimConnectionTable}, places: placesOf(scimConnectionTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := scimConnections.Get(v, key)
		if err != nil || row == nil {
			return nil, goneFrom("a SCIM connection", err)
		}
		return appendJSON(b, row.Value.shown(v.now))
	},
}

// transferredUser is a user whom this workspace has created, see View.issued.
type transferredUser struct {
	UserID UserID `json:"userId"`
}

var transferIssuedUsers = rowKind("issued_user", issuedUserTable, atLast, func(b, key, _ []byte) ([]byte, error) {
	user, _, ok := storage.CutStr(key)
	if !ok || user == "" {
		return nil, fmt.Errorf("%w: issued user of %d bytes", storage.ErrFormat, len(key))
	}
	return appendJSON(b, transferredUser{UserID(user)})
})
