package storage

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// SegmentCache keeps rows of segments that queries read, of all workspaces: blocks of terms and of columns. A seek in
// Pebble goes through all of its levels and takes some ten microseconds, one here a tenth of that.
//
// It is exact. The rows of a segment that counts never change, and a workspace gives each segment a number of its own.
// Only a workspace or a shard whose rows are replaced as a whole may have another segment of the same number later.
// Store.CommitState and Store.ReplaceState drop what is kept of its rows before that begins. Until it has ended nobody
// gets a SegmentMoment, and those of before are of no use any longer: a reader of an older snapshot neither finds rows
// here nor adds any.
type SegmentCache struct {
	table TableID
	seed  maphash.Seed
	parts [segmentParts]segmentPart
	// changing are the replacements that have begun and not ended, and changes those that have begun.
	changing atomic.Int32
	changes  atomic.Uint64

	mu    sync.Mutex // guards the rest; taken while a part is locked, never the other way around
	most  int64
	bytes int64
	clock []*cachedBlock
	hand  int
}

// segmentParts is the number of parts with a lock of their own.
const segmentParts = 64

// cachedBlockBytes is the memory of a block beside its keys and its value.
const cachedBlockBytes = 176

type segmentPart struct {
	mu   sync.RWMutex
	runs map[segmentRun]*cachedRun

	hits, misses atomic.Uint64

	_ [64]byte // no two parts in one line of a processor's cache
}

// segmentRun names the rows of one kind of a segment: a dictionary or a column.
type segmentRun struct {
	prefix  [prefixLen]byte // of the workspace
	segment uint32
	kind    byte
}

// cachedRun has the blocks of a run that are kept, by their last keys.
type cachedRun struct{ blocks []*cachedBlock }

// cachedBlock is a block. Its run's part guards it, but for used and at; run and size never change.
type cachedBlock struct {
	termBlock
	run  segmentRun
	size int64 // bytes of memory
	used atomic.Bool
	at   int // in the clock; -1: not there any longer
}

// NewSegmentCache makes a cache of so many bytes for the segments in a table; nil if there is nothing to keep.
func NewSegmentCache(bytes int64, table TableID) *SegmentCache {
	if bytes <= 0 {
		return nil
	}
	c := &SegmentCache{table: table, seed: maphash.MakeSeed(), most: bytes}
	for i := range c.parts {
		c.parts[i].runs = map[segmentRun]*cachedRun{}
	}
	return c
}

// SegmentMoment lets a view that begins to read at a moment, or later, use a cache. The zero value lets it use none.
type SegmentMoment struct {
	cache   *SegmentCache
	changes uint64
}

// Now gives the moment to a reader that takes its snapshot after it.
func (c *SegmentCache) Now() SegmentMoment {
	if c == nil {
		return SegmentMoment{}
	}
	changes := c.changes.Load()
	if c.changing.Load() > 0 {
		return SegmentMoment{}
	}
	return SegmentMoment{c, changes}
}

func (c *SegmentCache) part(run *segmentRun) *segmentPart {
	return &c.parts[maphash.Comparable(c.seed, *run)%segmentParts]
}

// find gives the block that a seek for a key finds; one without entries when it is not kept.
func (m SegmentMoment) find(run segmentRun, key []byte) (found termBlock) {
	p := m.cache.part(&run)
	p.mu.RLock()
	if r := p.runs[run]; r != nil && m.cache.changes.Load() == m.changes {
		if i := r.search(key); i < len(r.blocks) && bytes.Compare(r.blocks[i].from, key) <= 0 {
			if b := r.blocks[i]; !b.used.Load() {
				b.used.Store(true)
			}
			found = r.blocks[i].termBlock
		}
	}
	p.mu.RUnlock()
	if found.entries != nil {
		p.hits.Add(1)
	} else {
		p.misses.Add(1)
	}
	return found
}

// search gives the place of the first block whose last key is not before a key.
func (r *cachedRun) search(key []byte) int {
	return sort.Search(len(r.blocks), func(i int) bool { return bytes.Compare(r.blocks[i].last, key) >= 0 })
}

// add keeps a copy of the block that a seek for a key found.
func (m SegmentMoment) add(run segmentRun, key, last, entries []byte) {
	c := m.cache
	size := cachedBlockBytes + int64(len(key)+len(last)+len(entries))
	if size > c.most/segmentParts || c.changes.Load() != m.changes { // before others make room for it
		return
	}
	for _, b := range c.reserve(size) {
		c.drop(b)
	}
	b := &cachedBlock{termBlock: termBlock{bytes.Clone(key), bytes.Clone(last), bytes.Clone(entries)}, run: run, size: size}
	p := c.part(&run)
	p.mu.Lock()
	defer p.mu.Unlock()
	added := c.changes.Load() == m.changes && p.insert(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !added {
		c.bytes -= size
		return
	}
	b.at = len(c.clock)
	c.clock = append(c.clock, b)
}

// insert adds a block to its run, and reports whether it was not there. Then it has the lower of both first keys.
func (p *segmentPart) insert(b *cachedBlock) bool {
	r := p.runs[b.run]
	if r == nil {
		r = &cachedRun{}
		p.runs[b.run] = r
	}
	i := r.search(b.last)
	if i < len(r.blocks) && bytes.Equal(r.blocks[i].last, b.last) {
		if there := r.blocks[i]; bytes.Compare(b.from, there.from) < 0 {
			there.from = b.from
		}
		return false
	}
	r.blocks = slices.Insert(r.blocks, i, b)
	return true
}

// reserve takes so many bytes. Until they are there it takes blocks from the clock that were not used since the hand
// passed them, which the caller is to drop.
func (c *SegmentCache) reserve(bytes int64) (gone []*cachedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += bytes
	for c.bytes > c.most && len(c.clock) > 0 {
		if c.hand >= len(c.clock) {
			c.hand = 0
		}
		b := c.clock[c.hand]
		if b.used.Swap(false) {
			c.hand++
			continue
		}
		c.stop(b)
		gone = append(gone, b)
	}
	return gone
}

// stop takes a block from the clock, if it is there. The caller holds c.mu.
func (c *SegmentCache) stop(b *cachedBlock) {
	if b.at < 0 {
		return
	}
	last := c.clock[len(c.clock)-1]
	c.clock[b.at], last.at = last, b.at
	c.clock[len(c.clock)-1] = nil
	c.clock = c.clock[:len(c.clock)-1]
	c.bytes -= b.size
	b.at = -1
}

// drop removes a block that is not in the clock any longer.
func (c *SegmentCache) drop(b *cachedBlock) {
	p := c.part(&b.run)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[b.run]
	if r == nil {
		return
	}
	if i := r.search(b.last); i < len(r.blocks) && r.blocks[i] == b {
		if r.blocks = slices.Delete(r.blocks, i, i+1); len(r.blocks) == 0 {
			delete(p.runs, b.run)
		}
	}
}

// begin drops what is kept of the rows from start up to, and without, end, which are about to be replaced. Nobody
// gets a moment until end.
func (c *SegmentCache) begin(start, end []byte) {
	c.changing.Add(1)
	c.changes.Add(1)
	for i := range c.parts {
		p := &c.parts[i]
		var gone []*cachedBlock
		p.mu.Lock()
		for run, r := range p.runs {
			if first, behind := c.bounds(&run); bytes.Compare(first, end) < 0 && bytes.Compare(start, behind) < 0 {
				gone = append(gone, r.blocks...)
				delete(p.runs, run)
			}
		}
		p.mu.Unlock()
		c.mu.Lock()
		for _, b := range gone {
			c.stop(b)
		}
		c.mu.Unlock()
	}
}

func (c *SegmentCache) end() { c.changing.Add(-1) }

// bounds gives the least key that the rows of a run may have, and one behind all of them.
func (c *SegmentCache) bounds(run *segmentRun) (first, behind []byte) {
	first = append(append(make([]byte, 0, prefixLen+1+keyBytes), run.prefix[:]...), byte(c.table))
	first = append(binary.BigEndian.AppendUint32(first, run.segment), run.kind)
	return first, successor(first)
}

// replaces reports whether the deletion of a range of keys may be that of all segments of a workspace. The rows of one
// segment are deleted when it counts no longer.
func (c *SegmentCache) replaces(start, end []byte) bool {
	if c == nil {
		return false
	}
	if len(start) <= prefixLen || len(end) <= prefixLen || !bytes.Equal(start[:prefixLen], end[:prefixLen]) {
		return true
	}
	table := append(append(make([]byte, 0, prefixLen+1), start[:prefixLen]...), byte(c.table))
	if bytes.Compare(end, table) <= 0 || bytes.Compare(start, successor(table)) >= 0 {
		return false
	}
	const segment = prefixLen + 1 + 4
	return len(start) < segment || !bytes.HasPrefix(start, table) || !bytes.Equal(end, successor(start[:segment]))
}

// SegmentCacheUse is what a cache of segments holds and did.
type SegmentCacheUse struct {
	Bytes        int64
	Hits, Misses uint64
}

// Use returns what the cache holds and did.
func (c *SegmentCache) Use() (use SegmentCacheUse) {
	if c == nil {
		return use
	}
	for i := range c.parts {
		use.Hits += c.parts[i].hits.Load()
		use.Misses += c.parts[i].misses.Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	use.Bytes = c.bytes
	return use
}
