package storage

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestMemTables(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ cache, state, raft int64 }{
		{0, minMemTable, minMemTable},
		{1 << 20, minMemTable, minMemTable},
		{16 << 20, 4 << 20, 2 << 20},
		{DefaultCacheBytes, 8 << 20, 4 << 20},
		{64 << 20, 16 << 20, 8 << 20},
		{160 << 20, 16 << 20, 8 << 20},
		{200 << 20, 20 << 20, 10 << 20},
		{320 << 20, maxStateMemTable, maxRaftMemTable},
		{1 << 30, maxStateMemTable, maxRaftMemTable},
	} {
		if state, raft := memTables(row.cache); state != uint64(row.state) || raft != uint64(row.raft) {
			t.Errorf("of %d bytes %d and %d", row.cache, state, raft)
		}
	}
}

// The block cache gives room to the memtables of both instances.
func TestStore_MemoryStaysWithinItsBudget(t *testing.T) {
	t.Parallel()
	const budget = 8 << 20
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: budget, Logger: quiet}))(t)
	defer s.Close()
	value := make([]byte, 1<<10)
	for i := range 20_000 {
		key := fmt.Appendf(nil, "%08d", i*7919%20_000)
		if err := s.state.Set(key, value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if _, closer, err := s.state.Get(fmt.Appendf(nil, "%08d", 0)); err != nil {
			t.Fatal(err)
		} else if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FlushState(); err != nil {
		t.Fatal(err)
	}
	it := ok(s.state.NewIter(nil))(t)
	for valid := it.First(); valid; valid = it.Next() {
	}
	// The open iterator keeps compactions from deleting the files that are in the cache.
	use := s.Memory()
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if use.BlockCache == 0 || use.Misses == 0 || use.State.MemTables == 0 || use.Raft.MemTables == 0 || use.State.OpenFiles == 0 {
		t.Errorf("a part is missing: %+v", use)
	}
	// Each part of the cache may be over its share by a block.
	if sum := use.BlockCache + int64(use.State.MemTables+use.Raft.MemTables); sum > budget+budget/16 {
		t.Errorf("%d of %d bytes are used: %+v", sum, budget, use)
	}
}
