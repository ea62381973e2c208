package cluster

import (
	"sync"
	"time"

	"switchyard/storage"
)

// kept is the end of a log that truncations leave: the entries since the snapshot before, and
// those that an archive does not have yet.
// Snapshots are made as always: a restart reads no more of the log than without an archive.
type kept struct {
	mu    sync.Mutex
	least uint64 // oldest entry that is kept without an archive; 0: none
	from  uint64 // oldest entry that is kept for an archive; 0: none
	until int64  // by the tuning's clock
	since int64  // machine.logged when from was last raised
}

// KeepLog has this node keep the entries of a shard's log behind the index after for a time, so that
// they can be archived, while the logs of all shards keep less than a bound for this reason. When the
// disk is short of space they are truncated all the same.
func (n *Node) KeepLog(shard storage.Shard, after uint64, period time.Duration) {
	g := n.group(shard)
	if g == nil || !g.up.Load() {
		return
	}
	k := &g.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if after+1 > k.from {
		k.from, k.since = after+1, g.machine.logged.Load()
	}
	k.until = n.tuning.clock() + int64(period)
	g.log.Keep(k.oldest()) // a truncation may be under way
}

// KeptLogs returns a channel that gets a value when a log was truncated less than it would have been
// without KeepLog.
func (n *Node) KeptLogs() <-chan struct{} { return n.keptLogs }

// keptBytes returns about how many bytes of the log came since the archive had all of it.
func (g *group) keptBytes() int64 {
	g.kept.mu.Lock()
	defer g.kept.mu.Unlock()
	if g.kept.from == 0 {
		return 0
	}
	return g.machine.logged.Load() - g.kept.since
}

// oldest returns the oldest entry that is kept; 0: none is.
func (k *kept) oldest() uint64 {
	if k.from != 0 && (k.least == 0 || k.from < k.least) {
		return k.from
	}
	return k.least
}

// keepLog tells the log the oldest entry that a truncation leaves: least, or an older one that an archive
// lacks; none if there is neither. A shard may always keep its share of the bound for an archive, and more
// while others need less.
func (n *Node) keepLog(g *group, least uint64) {
	own, all, share := g.keptBytes(), int64(0), n.tuning.keepBytes
	if groups := n.hosted(); len(groups) > 0 {
		share /= int64(len(groups))
		for _, other := range groups {
			all += other.keptBytes()
		}
	}
	k := &g.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != 0 && (n.tuning.clock() >= k.until || own > share && all > n.tuning.keepBytes) {
		k.from = 0
	}
	if k.least = least; k.oldest() != least {
		select {
		case n.keptLogs <- struct{}{}:
		default: // a value is waiting
		}
	}
	g.log.Keep(k.oldest())
}

// forget has the log truncated as if there were no archive.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.from = 0
}
