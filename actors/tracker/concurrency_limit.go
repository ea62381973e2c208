package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ConcurrencyLimit is the number of sessions that may hold a concurrency key at once.
// Keys without one have the limit 1 (Decision 63).
type ConcurrencyLimit struct {
	Key   string `json:"key"`
	Limit int64  `json:"limit"`
}

// concurrencyLimits has a row for each key with a limit.
var concurrencyLimits = storage.Table[ConcurrencyLimit]{
	ID:      concurrencyLimitTable,
	Name:    "concurrency limit",
	Key:     func(k storage.Key, l *ConcurrencyLimit) storage.Key { return k.Str(l.Key) },
	Changed: audited(auditLimit, func(l *ConcurrencyLimit) string { return l.Key }),
}

var _ = declareTable(&concurrencyLimits, atMost(1000, "limits of concurrency keys"))

// ConcurrencyLimitIn names a key.
type ConcurrencyLimitIn struct {
	Key string `path:"key" form:"concurrencyKey"`
}

// PutConcurrencyLimitIn sets the limit of a key.
type PutConcurrencyLimitIn struct {
	ConcurrencyLimitIn
	Limit int64 `json:"limit" rules:"required,min=1,max=10000"`
}

// ShownConcurrencyLimit is the answer to PutConcurrencyLimit.
type ShownConcurrencyLimit struct {
	Limit ConcurrencyLimit `json:"limit"`
}

// ConcurrencyLimitList lists the limits.
type ConcurrencyLimitList struct {
	Limits []ConcurrencyLimit `json:"limits"`
}

// PutConcurrencyLimit sets the limit of a concurrency key.
var PutConcurrencyLimit = NewCommand[PutConcurrencyLimitIn, ShownConcurrencyLimit]("PutConcurrencyLimit", "Set the limit of a concurrency key", Needs{Level: Admin}, putConcurrencyLimit, Refuses(CodeConflict), Audits(auditLimit))

func putConcurrencyLimit(tx *Tx, in *PutConcurrencyLimitIn) (Reply, error) {
	l, was := ConcurrencyLimit{Key: in.Key, Limit: in.Limit}, int64(1)
	old, err := tx.concurrencyLimit(in.Key)
	if err != nil {
		return Reply{}, err
	}
	if old == nil {
		if err := tx.countRecord(concurrencyLimitTable, 1); err != nil {
			return Reply{}, err
		}
		_, err = concurrencyLimits.Insert(tx, &l)
	} else {
		was = old.Value.Limit
		_, err = concurrencyLimits.Update(tx, old, &l)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("store a limit: %w", err)
	}
	if err := tx.limitChanged(in.Key, was, l.Limit); err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &ShownConcurrencyLimit{l})
}

// limitChanged offers the places that a higher limit makes free, or parks the sessions of
// a key that a lower one makes full.
func (tx *Tx) limitChanged(key string, from, to int64) error {
	if to <= from {
		return tx.parkFull(key)
	}
	return tx.offerPlaces(&freedPlace{key: key, all: true}, int(to-from))
}

func (v *View) concurrencyLimit(key string) (*storage.Row[ConcurrencyLimit], error) {
	row, err := concurrencyLimits.Get(v, storage.Key(nil).Str(key))
	if err != nil {
		return nil, fmt.Errorf("read a limit: %w", err)
	}
	return row, nil
}

// DeleteConcurrencyLimit gives a concurrency key the limit 1 again.
var DeleteConcurrencyLimit = NewCommand[ConcurrencyLimitIn, None]("DeleteConcurrencyLimit", "Remove the limit of a concurrency key", Needs{Level: Admin}, deleteConcurrencyLimit, WithSpaceEffect(FreesSpace), Audits(auditLimit))

func deleteConcurrencyLimit(tx *Tx, in *ConcurrencyLimitIn) (Reply, error) {
	row, err := tx.concurrencyLimit(in.Key)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("limit")
	}
	if err := concurrencyLimits.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("remove a limit: %w", err)
	}
	if err := tx.countRecord(concurrencyLimitTable, -1); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.limitChanged(in.Key, row.Value.Limit, 1)
}

// ListConcurrencyLimits lists the limits of concurrency keys, in the order of the keys.
var ListConcurrencyLimits = NewQuery[None, ConcurrencyLimitList]("ListConcurrencyLimits", "List the limits of concurrency keys", Needs{Read, "sessions"}, listConcurrencyLimits, FromSnapshot)

func listConcurrencyLimits(v *View, _ *None) (Reply, error) {
	list := ConcurrencyLimitList{Limits: []ConcurrencyLimit{}}
	if err := concurrencyLimits.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := concurrencyLimits.Decode(rec)
		if err == nil {
			list.Limits = append(list.Limits, row.Value)
		}
		return true, err
	}); err != nil {
		return Reply{}, fmt.Errorf("list the limits: %w", err)
	}
	return jsonReply(Done, &list)
}
