package tracker

import (
	"fmt"

	"switchyard/storage"
)

// webhookRows are the plain rows of webhooks.
var webhookRows = []storage.RowSpec{
	{ID: webhookSecrets, Name: "webhook secret", Check: checkWebhookSecret},
	{ID: outboxTable, Name: "outbox", Check: checkOutbox},
	storage.Counter(pendingCount, "deliveries pending"),
	storage.Counter(deliveryCount, "deliveries over"),
	storage.Counter(webhookFailures, "webhook failing since"),
}

func checkWebhookSecret(v *storage.View, fields, value []byte) error {
	if _, err := parseWebhookSecret(value); err != nil {
		return err
	}
	return hasWebhook(v, fields)
}

func checkOutbox(v *storage.View, fields, value []byte) error {
	if len(fields) != 32 || len(value) != 8 {
		return fmt.Errorf("%w: outbox row of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
	}
	return hasWebhook(v, fields[:16])
}

// hasWebhook checks that the webhook of a row exists.
func hasWebhook(v *storage.View, id []byte) error {
	if len(id) != 16 {
		return fmt.Errorf("%w: webhook id of %d bytes", storage.ErrFormat, len(id))
	}
	there, err := v.Has(webhookTable, storage.Key(nil).DescID(storage.ID(id)))
	if err == nil && !there {
		err = fmt.Errorf("there is no such webhook")
	}
	return err
}

// checkWebhooks checks that every webhook has a secret, every delivery a webhook, and
// the counters of deliveries.
func checkWebhooks(v *storage.View, report reporter) error {
	var ids []storage.ID
	err := webhooks.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := webhooks.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		id, _ := storage.ParseID(row.Value.ID)
		ids = append(ids, id)
		there, err := v.Has(webhookSecrets, id[:])
		if err == nil && !there {
			report(webhooks.Name, pk, "has no secret")
		}
		return true, err
	})
	if err != nil {
		return err
	}
	counted := map[storage.TableID]uint64{}
	for _, id := range ids {
		for _, of := range []struct {
			counter storage.TableID
			tables  []storage.TableID
		}{{pendingCount, []storage.TableID{outboxTable, retryTable}}, {deliveryCount, []storage.TableID{deliveryTable}}} {
			var n uint64
			for _, table := range of.tables {
				err := v.Rows(table, id[:], nil, func(_, _ []byte) (bool, error) {
					n++
					counted[table]++
					return true, nil
				})
				if err != nil {
					return err
				}
			}
			counted, err := v.Number(of.counter, id[:])
			if err != nil {
				return err
			}
			if counted != n {
				report("deliveries counted", id[:], "says %d, there are %d", counted, n)
			}
		}
	}
	return checkStrays(v, counted, report)
}

// checkStrays reports deliveries and counters whose webhook does not exist.
func checkStrays(v *storage.View, counted map[storage.TableID]uint64, report reporter) error {
	for _, table := range []storage.TableID{outboxTable, retryTable, deliveryTable} {
		var n uint64
		if err := v.Rows(table, nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			return err
		}
		if n != counted[table] {
			report("deliveries", []byte{byte(table)}, "%d belong to no webhook", n-counted[table])
		}
	}
	for _, table := range []storage.TableID{pendingCount, deliveryCount, webhookFailures} {
		err := v.Rows(table, nil, nil, func(fields, _ []byte) (bool, error) {
			if err := hasWebhook(v, fields); err != nil {
				report("deliveries counted", fields, "%v", err)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
