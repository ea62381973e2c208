package tracker

import (
	"encoding/base64"
	"fmt"

	"switchyard/storage"
)

// PutInboundSecretIn is a source with its new secret.
type PutInboundSecretIn struct {
	InboundSourceIn
	// Secret is generated if it is absent. A short one could be guessed from one
	// recorded call.
	Secret Opt[string] `json:"secret" rules:"min=8,max=256"`
}

// InboundSecret is a source with its secret, which only this answer shows.
type InboundSecret struct {
	Source string `json:"source"`
	Secret string `json:"secret"`
}

// PutInboundSecret sets or replaces the secret of a source.
var PutInboundSecret = NewCommand[PutInboundSecretIn, InboundSecret]("PutInboundSecret", "Set the secret of a source", Needs{Level: Admin}, putInboundSecret, WithSecret, Audits(auditInboundSecret))

func putInboundSecret(tx *Tx, in *PutInboundSecretIn) (Reply, error) {
	secret := in.Secret.Value
	if !in.Secret.Set {
		var raw [inboundSecretLen]byte
		if err := tx.Secret(raw[:]); err != nil {
			return Reply{}, fmt.Errorf("make an inbound secret: %w", err)
		}
		secret = inboundSecretPrefix + base64.StdEncoding.EncodeToString(raw[:])
	}
	old, err := inboundSecrets.Get(tx, storage.Key(nil).Str(in.Source))
	if err != nil {
		return Reply{}, fmt.Errorf("read an inbound secret: %w", err)
	}
	now := At(tx.now)
	s := inboundSecret{Source: in.Source, Secret: secret, CreatedAt: now, UpdatedAt: now}
	if old != nil {
		s.CreatedAt = old.Value.CreatedAt
		_, err = inboundSecrets.Update(tx, old, &s)
	} else if err = tx.countRecord(inboundSecretTable, 1); err == nil {
		_, err = inboundSecrets.Insert(tx, &s)
	}
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &InboundSecret{in.Source, secret})
}
