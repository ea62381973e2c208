package tracker

import (
	"encoding/binary"
	"fmt"
	"slices"

	"switchyard/storage"
)

// maxPending limits the pending deliveries of one webhook. Beyond it the webhook is
// disabled: a receiver so far behind will not catch up (Decision 46).
const maxPending = 1_000_000

// knownHooks caches the committed webhooks of a workspace, so that an event costs no
// look-up. Owned by the workspace's goroutine, and dropped whenever a batch that
// changes webhooks commits.
type knownHooks struct {
	known bool
	list  []knownHook
}

type knownHook struct {
	id     storage.ID
	all    bool
	events []string
}

func (k *knownHooks) forget() { *k = knownHooks{} }

func (h *knownHook) wants(eventType string) bool {
	return h.all || slices.ContainsFunc(h.events, func(p string) bool { return matchesEvent(p, eventType) })
}

// activeHooks returns the active webhooks.
func (tx *Tx) activeHooks() ([]knownHook, error) {
	k := &tx.buffer.hooks
	changed := tx.buffer.Dirty()&DirtyWebhooks != 0
	if k.known && !changed {
		return k.list, nil
	}
	var list []knownHook
	err := webhooks.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := webhooks.Decode(rec)
		if err == nil && row.Value.IsActive {
			id, _ := storage.ParseID(row.Value.ID)
			list = append(list, knownHook{id: id, all: slices.Contains(row.Value.Events, "*"), events: row.Value.Events})
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the webhooks: %w", err)
	}
	if !changed {
		*k = knownHooks{known: true, list: list}
	}
	return list, nil
}

// enqueue adds an event to the outbox of every webhook that subscribes to its type, in
// the batch of the event. It does not check who may see the event: only admins, who see
// everything, make webhooks.
func (tx *Tx) enqueue(eventType string, sequence uint64) error {
	hooks, err := tx.activeHooks()
	if err != nil {
		return err
	}
	for i := range hooks {
		if !hooks[i].wants(eventType) {
			continue
		}
		waiting, err := tx.Counter(pendingCount, hooks[i].id)
		if err != nil {
			return err
		}
		if waiting >= maxPending {
			err = tx.disableWebhook(hooks[i].id, DisabledBacklog)
		} else {
			_, err = tx.queueDelivery(hooks[i].id, sequence)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// queueDelivery writes the row of a delivery's first attempt, with the sequence of its
// event, or 0 for a test. Ids grow, so the rows of a webhook are in the order of
// commits.
func (tx *Tx) queueDelivery(webhook storage.ID, sequence uint64) (storage.ID, error) {
	id, err := tx.NewID()
	if err != nil {
		return id, err
	}
	var key [32]byte
	copy(key[:], webhook[:])
	copy(key[16:], id[:])
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], sequence)
	if err := tx.Writer().SetValue(outboxTable, key[:], value[:]); err != nil {
		return id, err
	}
	tx.Writer().MarkDirty(DirtyOutbox)
	if l := tx.buffer; !slices.Contains(l.queued, webhook) {
		l.queued = append(l.queued, webhook)
	}
	_, err = tx.Next(pendingCount, webhook)
	return id, err
}

// addTo adds a difference to a counter.
func (tx *Tx) addTo(table storage.TableID, subject storage.ID, by int) error {
	if by == 0 {
		return nil
	}
	n, err := tx.Counter(table, subject)
	if err != nil {
		return err
	}
	if by < 0 && n < uint64(-by) {
		return fmt.Errorf("%w: counter %d of %s is at %d and should go down by %d", storage.ErrFormat, table, subject, n, -by)
	}
	return tx.SetCounter(table, subject, n+uint64(by)) // adding a negative number wraps around, as intended
}
