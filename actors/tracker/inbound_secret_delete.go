package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteInboundSecret removes a source's secret: its calls are refused from then on.
var DeleteInboundSecret = NewCommand[InboundSourceIn, None]("DeleteInboundSecret", "Delete the secret of a source", Needs{Level: Admin}, deleteInboundSecret, WithSpaceEffect(FreesSpace), Audits(auditInboundSecret))

func deleteInboundSecret(tx *Tx, in *InboundSourceIn) (Reply, error) {
	row, err := inboundSecrets.Get(tx, storage.Key(nil).Str(in.Source))
	if err != nil {
		return Reply{}, fmt.Errorf("read an inbound secret: %w", err)
	}
	if row == nil {
		return Reply{}, NotFound("source")
	}
	if err := inboundSecrets.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("delete an inbound secret: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.countRecord(inboundSecretTable, -1)
}
