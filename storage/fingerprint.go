package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Fingerprint is a checksum of a shard's rows: two replicas with equal fingerprints hold the same
// rows, whatever their layout on disk.
type Fingerprint struct {
	Rows int64
	Sum  [16]byte
}

// String is the sum in hexadecimal and the number of rows.
func (f Fingerprint) String() string {
	return fmt.Sprintf("%s/%d", hex.EncodeToString(f.Sum[:]), f.Rows)
}

// FingerprintOptions say how the rows of a fingerprint are read.
type FingerprintOptions struct {
	// Without are keys of rows that are left out.
	Without [][]byte
	// Rests returns how long the reading rests after some milliseconds of work; nil: it does not rest.
	Rests func(work time.Duration) time.Duration
}

// FingerprintOf reads all rows of a shard, but for those whose keys are among
// without, through db: the database or a snapshot of it.
func FingerprintOf(ctx context.Context, db pebble.Reader, shard Shard, without ...[]byte) (Fingerprint, error) {
	return FingerprintWith(ctx, db, shard, FingerprintOptions{Without: without})
}

// FingerprintWith is FingerprintOf with options.
func FingerprintWith(ctx context.Context, db pebble.Reader, shard Shard, options FingerprintOptions) (f Fingerprint, err error) {
	start, end := ShardRange(shard)
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint shard %d: %w", shard, err)
	}
	defer func() {
		if err = errors.Join(err, it.Close()); err != nil {
			f, err = Fingerprint{}, fmt.Errorf("fingerprint shard %d: %w", shard, err)
		}
	}()
	p, work := newPrinter(options.Without), startWork(ctx, options.Rests)
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return f, err
		}
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		p.add(it.Key(), value)
		work.row(value)
	}
	if err := it.Error(); err != nil {
		return f, err
	}
	return p.fingerprint(), nil
}

// printer makes the fingerprint of rows that it is given in the order of their keys.
type printer struct {
	sum     hash.Hash
	rows    int64
	without [][]byte
}

func newPrinter(without [][]byte) *printer { return &printer{sum: sha256.New(), without: without} }

func (p *printer) add(key, value []byte) {
	for _, k := range p.without {
		if bytes.Equal(k, key) {
			return
		}
	}
	p.rows++
	var lengths [8]byte
	binary.BigEndian.PutUint32(lengths[:], uint32(len(key)))
	binary.BigEndian.PutUint32(lengths[4:], uint32(len(value)))
	p.sum.Write(lengths[:])
	p.sum.Write(key)
	p.sum.Write(value)
}

func (p *printer) fingerprint() Fingerprint {
	f := Fingerprint{Rows: p.rows}
	copy(f.Sum[:], p.sum.Sum(nil))
	return f
}
