package node

import (
	"cmp"
	"fmt"
)

// The node's memory is divided as follows. codeMemory is for pages of the program's
// file, which count as resident memory but not as Go's. The rest is Go's: a third of
// it is for the block cache and the memtables, a sixteenth for copies of records that are
// read often, a sixteenth for such rows of search indexes, a tenth at most for search indexes, a twelfth at most for the sets that filter
// lists, an eighth for large changes, a sixteenth at most for webhook deliveries in flight, and the rest
// for requests in progress, the state of workspaces and shards, and garbage. With less for garbage the collector runs too often.
const (
	// DefaultMemory is Config.Memory when it says nothing.
	DefaultMemory = 512 * mebibyte
	// minMemory is the least memory that a node works with.
	minMemory  = 112 * mebibyte
	maxMemory  = 1 << 50
	codeMemory = 32 * mebibyte
)

// validateMemory refuses budgets that can't work.
func (c Config) validateMemory() error {
	if m := c.memory(); m < minMemory || m > maxMemory {
		return fmt.Errorf("--memory %dMiB: must be from %dMiB to %dTiB", m/mebibyte, minMemory/mebibyte, maxMemory>>40)
	}
	return nil
}

func (c Config) memory() uint64 { return cmp.Or(c.Memory, DefaultMemory) }

// GoMemory is the limit to set for the Go runtime, in bytes; 0 when the configuration
// is not valid.
func (c Config) GoMemory() int64 {
	if c.validateMemory() != nil {
		return 0
	}
	return int64(c.memory() - codeMemory)
}

// GCPercent returns the heap's growth in percent after which Go's garbage collector runs again, for debug.SetGCPercent:
// Go's usual 100 from 1 GiB on, and 75 with less memory. There most of the heap are memtables and blocks, which have
// no pointers to follow, so the additional runs cost little.
func (c Config) GCPercent() int {
	if c.memory() < 1<<30 {
		return 75
	}
	return 100
}

// cacheBytes is the memory of the block cache and the memtables.
func (c Config) cacheBytes() int64 { return c.GoMemory() / 3 }

// recordBytes is the memory of the cache of records.
func (c Config) recordBytes() int64 { return c.GoMemory() / 16 }

// segmentBytes is the memory of the cache of segments.
func (c Config) segmentBytes() int64 { return c.GoMemory() / 16 }

// tailBytes is the memory for the issues that no search index holds yet, and four times as much for what
// is kept of the titles that one holds. Where issues are made faster than they are indexed, several times as much
// is taken before the index keeps up.
func (c Config) tailBytes() int64 { return c.GoMemory() / 32 }

// listBytes is the memory of the sets that filter lists of issues.
func (c Config) listBytes() int64 { return c.GoMemory() / 12 }

// changeBytes is the memory for large changes until they are committed.
func (c Config) changeBytes() int64 { return c.GoMemory() / 8 }

// deliveryBytes is the memory for webhook deliveries in flight. With
// 32 KiB for each, at most 4,096 are made at once.
func (c Config) deliveryBytes() int64 { return min(c.GoMemory()/16, 128*mebibyte) }
