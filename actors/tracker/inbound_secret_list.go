package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// InboundSource is a source that has a secret, without the secret.
type InboundSource struct {
	Source    string    `json:"source"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

// InboundSourceList is the answer to ListInboundSecrets.
type InboundSourceList struct {
	Secrets    []InboundSource `json:"secrets"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// ListInboundSecrets lists the sources that have a secret, by name.
var ListInboundSecrets = NewQuery[PageIn, InboundSourceList]("ListInboundSecrets", "List the sources that have a secret", Needs{Level: Admin}, listInboundSecrets, FromSnapshot)

func listInboundSecrets(v *View, in *PageIn) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{name: "secrets", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(v.Workspace(), "secrets")})
	if err != nil {
		return Reply{}, err
	}
	err = inboundSecrets.Scan(v, nil, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := inboundSecrets.Decode(rec)
		if err != nil {
			return false, err
		}
		shown, err := json.Marshal(&InboundSource{row.Value.Source, row.Value.CreatedAt, row.Value.UpdatedAt})
		return err == nil && p.add(pk, shown), err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list inbound secrets: %w", err)
	}
	return p.reply(), nil
}
