package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// DeliveryStatus is the status of a delivery.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySucceeded DeliveryStatus = "succeeded"
	DeliveryFailed    DeliveryStatus = "failed"
)

// EnumValues implements Enumerated.
func (DeliveryStatus) EnumValues() []string {
	return enumTexts([]DeliveryStatus{DeliveryPending, DeliverySucceeded, DeliveryFailed})
}

// WebhookDelivery is the delivery of an event to a webhook.
//
// It is in one of three tables: in the outbox, as a plain row, until its first attempt;
// in retries, ordered by due time, between attempts; and then in deliveries, of which a
// webhook keeps the newest.
type WebhookDelivery struct {
	ID             string    `json:"id"`
	SubscriptionID WebhookID `json:"subscriptionId"`
	EventID        string    `json:"eventId"`
	EventType      string    `json:"eventType"`
	// EventSequence is the event's sequence number; null for a test.
	EventSequence  *uint64        `json:"eventSequence"`
	Status         DeliveryStatus `json:"status"`
	Attempts       int            `json:"attempts"`
	LastStatusCode *int           `json:"lastStatusCode"`
	LastError      *string        `json:"lastError"`
	LastAttemptAt  *Timestamp     `json:"lastAttemptAt"`
	NextAttemptAt  *Timestamp     `json:"nextAttemptAt"`
	CreatedAt      Timestamp      `json:"createdAt"`
	DeliveredAt    *Timestamp     `json:"deliveredAt"`
	// FinishedAt is the time when the delivery was over, unless that is the time of the last
	// attempt.
	FinishedAt *Timestamp `json:"finishedAt,omitempty"`
}

func deliveryKey(k storage.Key, d *WebhookDelivery) storage.Key {
	webhook, _ := storage.ParseID(d.SubscriptionID)
	id, _ := storage.ParseID(d.ID)
	return k.ID(webhook).DescID(id)
}

func deliveryPK(webhook, id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, 32)).ID(webhook).DescID(id)
}

// retries holds the deliveries that failed and will be retried.
var retries = storage.Table[WebhookDelivery]{
	ID:   retryTable,
	Name: "delivery to be tried again",
	Key:  deliveryKey,
	Indexes: []storage.Index[WebhookDelivery]{{
		ID:   retryByDue,
		Name: "due",
		Entries: func(e *storage.Entries, d *WebhookDelivery) {
			webhook, _ := storage.ParseID(d.SubscriptionID)
			var due Timestamp
			if d.NextAttemptAt != nil {
				due = *d.NextAttemptAt
			}
			e.Add(e.Key().ID(webhook).U64(uint64(due.Time().UnixMilli())))
		},
	}},
}

var _ = declareTable(&retries)

// deliveries holds the finished deliveries.
var deliveries = storage.Table[WebhookDelivery]{
	ID:   deliveryTable,
	Name: "delivery",
	Key:  deliveryKey,
	Indexes: []storage.Index[WebhookDelivery]{{
		ID:   deliveryByEnd,
		Name: "end",
		Entries: func(e *storage.Entries, d *WebhookDelivery) {
			e.Add(e.Key().U64(uint64(d.endedAt().Time().UnixMilli())))
		},
	}},
}

// endedAt returns the time when a finished delivery was over.
func (d *WebhookDelivery) endedAt() Timestamp {
	switch {
	case d.FinishedAt != nil:
		return *d.FinishedAt
	case d.LastAttemptAt != nil:
		return *d.LastAttemptAt
	}
	return d.CreatedAt
}

var _ = declareTable(&deliveries)

// queuedDelivery returns a row of the outbox in the form that clients see.
func queuedDelivery(v *storage.View, webhook, id storage.ID, sequence uint64) (*WebhookDelivery, error) {
	head, _, err := readDeliveryEvent(v, webhook, id, sequence, nil)
	if err != nil {
		return nil, err
	}
	at := idTime(id)
	d := &WebhookDelivery{
		ID: id.String(), SubscriptionID: WebhookID(webhook.String()), EventID: head.ID, EventType: head.Type,
		Status: DeliveryPending, NextAttemptAt: &at, CreatedAt: at,
	}
	if sequence != 0 {
		d.EventSequence = &sequence
	}
	return d, nil
}

// idTime returns the time at which an id was made.
func idTime(id storage.ID) Timestamp {
	return At(time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)))
}

// DeliveryEvent is the content of a delivery. Body is nil if the event is no longer
// kept.
type DeliveryEvent struct {
	ID, Type string
	Body     []byte
}

// ReadDeliveryEvent reads the content of a delivery. admit is called before the event is read
// into memory, with its size in bytes or a little more, and may refuse that by an error, which is
// returned. It may be called more than once, the last time with the right size, and must not
// wait; nil admits all events.
func ReadDeliveryEvent(v *storage.View, webhook storage.ID, p PendingDelivery, admit func(size int) error) (DeliveryEvent, error) {
	e, _, err := readDeliveryEvent(v, webhook, p.ID, p.Sequence, admit)
	return e, err
}

func readDeliveryEvent(v *storage.View, webhook, id storage.ID, sequence uint64, admit func(size int) error) (e DeliveryEvent, found bool, err error) {
	if sequence == 0 {
		e.ID, e.Type = id.String(), eventWebhookTest
		e.Body, err = testEvent(v.Workspace(), webhook, id)
		return e, true, err
	}
	key := storage.Key(make([]byte, 0, 8)).U64(sequence)
	value, err := v.AdmittedValue(eventTable, key, nil, admit)
	if err != nil || value == nil {
		return e, false, err
	}
	rec, err := admittedEventRow(v, key, value, admit)
	if err != nil || rec == nil {
		return e, false, err
	}
	e.Body = rec.JSON()
	// Emit writes id and type first; neither has escaped characters.
	rest, ok := bytes.CutPrefix(e.Body, []byte(`{"id":"`))
	raw, rest, ok2 := bytes.Cut(rest, []byte(`","type":"`))
	typ, _, ok3 := bytes.Cut(rest, []byte{'"'})
	if !ok || !ok2 || !ok3 {
		return e, false, fmt.Errorf("%w: event %d does not begin with its id and type", storage.ErrFormat, sequence)
	}
	e.ID, e.Type = string(raw), string(typ)
	return e, true, nil
}

// testEvent returns the event of a test. It is derived from the delivery, so it is not
// stored, and every attempt has the same.
func testEvent(workspace, webhook, id storage.ID) ([]byte, error) {
	body, err := json.Marshal(&Event{
		ID: id.String(), Type: eventWebhookTest, OrganizationID: WorkspaceID(workspace.String()), CreatedAt: idTime(id),
		Actor: EventActor{ID: System.ID, Type: System.Type},
		Data:  json.RawMessage(`{"subscriptionId":"` + webhook.String() + `"}`),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a test event: %w", err)
	}
	return body, nil
}

// brief limits the length of an error's text.
func brief(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
