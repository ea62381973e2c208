package storage

import "github.com/cockroachdb/pebble/v2"

// DefaultCacheBytes is Config.CacheBytes when it says nothing.
const DefaultCacheBytes = 32 << 20

// The sizes of memtables. Each instance may hold a few: the one being written, those being flushed,
// and one kept for reuse.
const (
	minMemTable      = 1 << 20
	maxStateMemTable = 32 << 20
	maxRaftMemTable  = 16 << 20
)

// memTables returns the sizes of the memtables of both instances. Two of each take
// three quarters of the cache at most, as far as they are above their minimum. From 64 MiB of cache on they
// stay at half of their maximum, until that is a tenth of the cache for state/ and a twentieth for raft/.
func memTables(cache int64) (state, raft uint64) {
	bytes := uint64(max(cache, 0))
	state = min(max(bytes/4, minMemTable), max(bytes/10, maxStateMemTable/2), maxStateMemTable)
	raft = min(max(bytes/8, minMemTable), max(bytes/20, maxRaftMemTable/2), maxRaftMemTable)
	return state, raft
}

// unmergedLog is how many bytes of the log stay as they were flushed. Logs are
// truncated long before they come near it.
const unmergedLog = 256 << 20

// worthCompacting is how large the tables of the log must be for CompactRaft.
const worthCompacting = 8 << 20

// MemoryUse is the memory of the store, in bytes.
type MemoryUse struct {
	// BlockCache holds blocks of tables of both instances. Hits and Misses count the
	// look-ups in it.
	BlockCache   int64
	Hits, Misses int64
	// Raft and State are those of the two instances.
	Raft, State InstanceMemory
}

// InstanceMemory is the memory of one instance, in bytes.
type InstanceMemory struct {
	// MemTables counts the memtables being written, flushed or read, and those kept for reuse.
	MemTables uint64
	// OpenFiles counts the memory of open files.
	OpenFiles int64
}

// memoryUse combines the metrics of two instances with a common cache.
func memoryUse(raft, state *pebble.Metrics) MemoryUse {
	of := func(m *pebble.Metrics) InstanceMemory {
		return InstanceMemory{MemTables: m.MemTable.Size + m.MemTable.ZombieSize, OpenFiles: m.FileCache.Size}
	}
	return MemoryUse{
		BlockCache: state.BlockCache.Size, Hits: state.BlockCache.Hits, Misses: state.BlockCache.Misses,
		Raft: of(raft), State: of(state),
	}
}
