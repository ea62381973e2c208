package tracker

import (
	"encoding/binary"
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ListDeliveriesIn asks for a page of a webhook's deliveries.
type ListDeliveriesIn struct {
	ID     WebhookID      `path:"id"`
	Status DeliveryStatus `query:"status"`
	Limit  int            `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string         `query:"cursor" rules:"max=1024"`
}

// DeliveryList is the answer to ListDeliveries.
type DeliveryList struct {
	Deliveries []WebhookDelivery `json:"deliveries"`
	NextCursor string            `json:"nextCursor,omitempty"`
}

// ListDeliveries lists a webhook's deliveries, newest first: all pending ones, and the
// newest of the finished ones.
var ListDeliveries = NewQuery[ListDeliveriesIn, DeliveryList]("ListDeliveries", "List a webhook's deliveries", Needs{Level: Admin}, listDeliveries, FromSnapshot)

// foundDelivery is a delivery's id and JSON.
type foundDelivery struct {
	id   storage.ID
	body []byte
}

func listDeliveries(v *View, in *ListDeliveriesIn) (Reply, error) {
	_, webhook, err := v.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	p, err := newPage(v.Buf, pageSpec{
		name: "deliveries", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(webhook, "deliveries", Some(string(in.Status))), keyLen: len(webhook),
	})
	if err != nil {
		return Reply{}, err
	}
	// Each of the three tables may have as many as the page takes.
	var found []foundDelivery
	if in.Status != DeliverySucceeded && in.Status != DeliveryFailed {
		if found, err = v.queued(webhook, p.after, in.Limit+1); err != nil {
			return Reply{}, err
		}
		if found, err = v.deliveriesIn(&retries, webhook, p.after, "", in.Limit+1, found); err != nil {
			return Reply{}, err
		}
	}
	if in.Status != DeliveryPending {
		if found, err = v.deliveriesIn(&deliveries, webhook, p.after, in.Status, in.Limit+1, found); err != nil {
			return Reply{}, err
		}
	}
	slices.SortFunc(found, func(a, b foundDelivery) int { return -slices.Compare(a.id[:], b.id[:]) })
	for _, f := range found {
		if !p.add(f.id[:], f.body) {
			break
		}
	}
	return p.reply(), nil
}

// queued returns deliveries of the outbox that are older than an id (nil: the newest).
func (v *View) queued(webhook storage.ID, before []byte, limit int) (found []foundDelivery, err error) {
	type row struct {
		id       storage.ID
		sequence uint64
	}
	var rows []row
	err = v.RowsBack(outboxTable, webhook[:], before, func(fields, value []byte) (bool, error) {
		if len(fields) != 32 || len(value) != 8 {
			return false, fmt.Errorf("%w: outbox row of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
		}
		rows = append(rows, row{storage.ID(fields[16:]), binary.BigEndian.Uint64(value)})
		return len(rows) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list an outbox: %w", err)
	}
	for _, r := range rows {
		d, err := queuedDelivery(&v.View, webhook, r.id, r.sequence)
		if err != nil {
			return nil, err
		}
		body, err := json.MarshalWithOption(d, json.DisableHTMLEscape())
		if err != nil {
			return nil, fmt.Errorf("encode a delivery: %w", err)
		}
		found = append(found, foundDelivery{r.id, body})
	}
	return found, nil
}

// deliveriesIn appends deliveries of a table that are older than an id, and have the
// status if one is given.
func (v *View) deliveriesIn(table *storage.Table[WebhookDelivery], webhook storage.ID, before []byte, status DeliveryStatus, limit int, found []foundDelivery) ([]foundDelivery, error) {
	var from []byte
	if before != nil {
		from = deliveryPK(webhook, storage.ID(before))
	}
	n := 0
	err := table.Scan(v, webhook[:], from, func(pk []byte, rec storage.Record) (bool, error) {
		var d struct {
			ID     string         `json:"id"`
			Status DeliveryStatus `json:"status"`
		}
		if err := json.Unmarshal(rec.JSON(), &d); err != nil {
			return false, fmt.Errorf("decode a delivery: %w", err)
		}
		if status != "" && d.Status != status {
			return true, nil
		}
		id, _ := storage.ParseID(d.ID)
		found = append(found, foundDelivery{id, append([]byte(nil), rec.JSON()...)})
		n++
		return n < limit, nil
	})
	return found, err
}
