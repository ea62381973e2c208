package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

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

// FingerprintOf reads all rows of a shard, but for those whose keys are among
// without, through db: the database or a snapshot of it.
func FingerprintOf(ctx context.Context, db pebble.Reader, shard Shard, without ...[]byte) (f Fingerprint, err error) {
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
	sum := sha256.New()
	var lengths [8]byte
next:
	for ok := it.First(); ok; ok = it.Next() {
		for _, key := range without {
			if bytes.Equal(key, it.Key()) {
				continue next
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return f, err
		}
		if f.Rows%1024 == 0 && ctx.Err() != nil {
			return f, ctx.Err()
		}
		f.Rows++
		binary.BigEndian.PutUint32(lengths[:], uint32(len(it.Key())))
		binary.BigEndian.PutUint32(lengths[4:], uint32(len(value)))
		sum.Write(lengths[:])
		sum.Write(it.Key())
		sum.Write(value)
	}
	if err := it.Error(); err != nil {
		return f, err
	}
	copy(f.Sum[:], sum.Sum(nil))
	return f, nil
}
