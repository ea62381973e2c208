package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
)

// Fingerprint sums up every row of a shard, keys and values, but those under a
// prefix that skip is true for: two replicas with the same one hold the same.
func Fingerprint(reader pebble.Reader, shard Shard, skip func(key []byte) bool) (print uint64, err error) {
	start, end := ShardRange(shard)
	it, err := reader.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return 0, fmt.Errorf("read shard %d: %w", shard, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	sum := xxhash.New()
	var size [8]byte
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, fmt.Errorf("read shard %d: %w", shard, err)
		}
		if skip(it.Key()) {
			continue
		}
		for _, part := range [][]byte{it.Key(), value} {
			binary.BigEndian.PutUint64(size[:], uint64(len(part)))
			_, _ = sum.Write(size[:]) // never fails
			_, _ = sum.Write(part)
		}
	}
	return sum.Sum64(), it.Error()
}
