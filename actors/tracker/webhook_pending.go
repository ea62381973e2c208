package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// These functions are the reads of a shard's dispatcher. It writes the results of its
// attempts with RecordDeliveries only.

// WebhookTarget is a webhook with everything that its deliveries need.
type WebhookTarget struct {
	ID  storage.ID
	URL string
	// Host is the host of the URL, in a normalized form.
	Host   string
	Active bool
	// Secret signs deliveries; until Until, Previous does, too.
	Secret, Previous string
	Until            time.Time
}

// PendingDelivery is a delivery to be made. Sequence is that of its event, or 0 for a
// test. Due is the time at which a retry was due.
type PendingDelivery struct {
	ID       storage.ID
	Sequence uint64
	Due      time.Time
}

// ListWebhookWorkspaces returns the workspaces of a shard that have webhooks. v reads
// the shard's own range.
func ListWebhookWorkspaces(v *storage.View) (list []storage.ID, err error) {
	err = v.Rows(webhookByShard, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 32 {
			return false, fmt.Errorf("%w: webhook entry of %d bytes", storage.ErrFormat, len(fields))
		}
		if id := storage.ID(fields[:16]); len(list) == 0 || list[len(list)-1] != id {
			list = append(list, id)
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list workspaces with webhooks: %w", err)
	}
	return list, nil
}

// ListWebhookTargets returns a workspace's webhooks, including inactive ones, whose
// pending deliveries must be ended.
func ListWebhookTargets(v *storage.View) (list []WebhookTarget, err error) {
	err = webhooks.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := webhooks.Decode(rec)
		if err != nil {
			return false, err
		}
		id, _ := storage.ParseID(row.Value.ID)
		list = append(list, WebhookTarget{ID: id, URL: row.Value.URL, Host: webhookHost(row.Value.URL), Active: row.Value.IsActive})
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	kept := list[:0]
	for _, t := range list {
		there, err := v.Has(webhookSecrets, t.ID[:])
		if err != nil {
			return nil, err
		}
		if !there {
			continue // deleted between the two look-ups
		}
		s, err := readWebhookSecret(v, t.ID)
		if err != nil {
			return nil, err
		}
		t.Secret, t.Previous, t.Until = s.Secret, s.Previous, s.Until.Time()
		kept = append(kept, t)
	}
	return kept, nil
}

// WebhookSucceeded reports whether the last attempt to deliver to a webhook succeeded, as far as its
// rows show. It is false if none has been made.
func WebhookSucceeded(v *storage.View, webhook storage.ID) (bool, error) {
	failing, err := v.Number(webhookFailures, webhook[:])
	if err != nil {
		return false, fmt.Errorf("read the failures of a webhook: %w", err)
	}
	if failing != 0 {
		return false, nil
	}
	over, err := v.Number(deliveryCount, webhook[:])
	if err != nil {
		return false, fmt.Errorf("read the deliveries of a webhook: %w", err)
	}
	return over > 0, nil
}

// ListOutbox returns first attempts of a webhook after a delivery (zero: from the
// start), in the order of commits.
func ListOutbox(v *storage.View, webhook, after storage.ID, limit int) (list []PendingDelivery, err error) {
	var from []byte
	if after != (storage.ID{}) {
		from = append(append(from, after[:]...), 0)
	}
	err = v.Rows(outboxTable, webhook[:], from, func(fields, value []byte) (bool, error) {
		if len(list) == limit {
			return false, nil
		}
		if len(fields) != 32 || len(value) != 8 {
			return false, fmt.Errorf("%w: outbox row of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
		}
		list = append(list, PendingDelivery{ID: storage.ID(fields[16:]), Sequence: binary.BigEndian.Uint64(value)})
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list an outbox: %w", err)
	}
	return list, nil
}

// ListRetries returns the deliveries of a webhook whose retry is due, the longest
// overdue first, and the time of the first retry that is not among them, or zero.
func ListRetries(v *storage.View, webhook storage.ID, now time.Time, limit int) (list []PendingDelivery, next time.Time, err error) {
	err = v.Rows(retryByDue, webhook[:], nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 16+8+32 {
			return false, fmt.Errorf("%w: retry entry of %d bytes", storage.ErrFormat, len(fields))
		}
		due := time.UnixMilli(int64(binary.BigEndian.Uint64(fields[16:])))
		if due.After(now) || len(list) == limit {
			next = due
			return false, nil
		}
		row, err := retries.Get(v, fields[24:])
		if err != nil || row == nil { // nil: it ended between the two look-ups
			return true, err
		}
		p := PendingDelivery{Due: due}
		p.ID, _ = storage.ParseID(row.Value.ID)
		if row.Value.EventSequence != nil {
			p.Sequence = *row.Value.EventSequence
		}
		list = append(list, p)
		return true, nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list retries: %w", err)
	}
	return list, next, nil
}
