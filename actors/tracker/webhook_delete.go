package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteWebhook removes a webhook subscription with its deliveries, including pending
// ones.
var DeleteWebhook = NewCommand[WebhookByIDIn, None]("DeleteWebhook", "Delete a webhook subscription", Needs{Level: Admin}, deleteWebhook, WithSpaceEffect(FreesSpace), Audits(auditWebhook))

// maxDropped limits the rows that one batch of a deletion removes.
const maxDropped = 5_000

// deleteWebhook removes the subscription after its last row, so that an interrupted
// deletion can be repeated.
func deleteWebhook(tx *Tx, in *WebhookByIDIn) (Reply, error) {
	row, id, err := tx.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	left := maxDropped
	if err := tx.dropOutbox(id, &left); err != nil {
		return Reply{}, err
	}
	for _, of := range []struct {
		table   *storage.Table[WebhookDelivery]
		counter storage.TableID
	}{{&retries, pendingCount}, {&deliveries, deliveryCount}} {
		if err := tx.dropDeliveries(of.table, of.counter, id, &left); err != nil {
			return Reply{}, err
		}
	}
	if left == 0 {
		return Reply{More: true}, nil
	}
	if err := tx.SetCounter(webhookFailures, id, 0); err != nil {
		return Reply{}, err
	}
	if err := tx.Writer().DeleteValue(webhookSecrets, id[:]); err != nil {
		return Reply{}, err
	}
	if err := webhooks.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("delete a webhook: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.countRecord(webhookTable, -1)
}

// dropOutbox removes up to left first attempts of a webhook.
func (tx *Tx) dropOutbox(id storage.ID, left *int) error {
	var keys [][]byte
	err := tx.Rows(outboxTable, id[:], nil, func(fields, _ []byte) (bool, error) {
		if *left == 0 {
			return false, nil
		}
		*left--
		keys = append(keys, append([]byte(nil), fields...))
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read a webhook's outbox: %w", err)
	}
	for _, key := range keys {
		if err := tx.Writer().DeleteValue(outboxTable, key); err != nil {
			return err
		}
	}
	return tx.addTo(pendingCount, id, -len(keys))
}

// dropDeliveries removes up to left deliveries of a webhook from a table.
func (tx *Tx) dropDeliveries(table *storage.Table[WebhookDelivery], counter storage.TableID, id storage.ID, left *int) error {
	var rows []*storage.Row[WebhookDelivery]
	err := table.Scan(tx, id[:], nil, func(_ []byte, rec storage.Record) (bool, error) {
		if *left == 0 {
			return false, nil
		}
		*left--
		row, err := table.Decode(rec)
		rows = append(rows, row)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read a webhook's deliveries: %w", err)
	}
	for _, row := range rows {
		if err := table.Delete(tx, row); err != nil {
			return err
		}
	}
	return tx.addTo(counter, id, -len(rows))
}

// dropWebhooks removes every webhook of a workspace that is being erased, since
// webhooks have entries outside of the workspace's key range.
func (tx *Tx) dropWebhooks() error {
	var rows []*storage.Row[Webhook] // at most as many as bounds allows
	err := webhooks.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := webhooks.Decode(rec)
		rows = append(rows, row)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the webhooks: %w", err)
	}
	for _, row := range rows {
		if err := webhooks.Delete(tx, row); err != nil {
			return err
		}
	}
	return nil
}
