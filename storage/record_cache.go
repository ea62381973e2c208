package storage

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// RecordCache keeps copies of records and counters of the state instance that are looked up
// often.
// A look-up in Pebble costs some microseconds, one here a tenth of that.
//
// It is exact: a look-up returns the same as one in Pebble. Every write to the state passes
// through Store.CommitState or Store.ReplaceState. Both drop the records that are about to change
// before the write begins, and let none of them in until it has ended. So there is no
// moment at which one reader sees the new record in Pebble and a later reader the old one
// here.
//
// Keys begin with shard and workspace, so a record is never found from another workspace.
type RecordCache struct {
	seed   maphash.Seed
	tables [256]bool // those whose records are kept
	most   int       // bytes of a part
	parts  [recordParts]recordPart

	bytes atomic.Int64
}

// recordParts is the number of parts with a lock of their own.
const recordParts = 64

// seenRecords is how many look-ups of its own a part remembers.
const seenRecords = 512

// recordOverhead is roughly what a kept record takes beside key and value, in bytes.
const recordOverhead = 160

// recordPart keeps the records of some keys, and evicts those that were not used since
// the hand of its clock passed them.
type recordPart struct {
	mu      sync.Mutex // guards the rest; never held while waiting for anything
	by      map[uint64]*keptRecord
	clock   []*keptRecord
	hand    int
	bytes   int
	writing int    // writes to the part's records that have begun and not ended
	writes  uint64 // writes that have begun

	hits, misses uint64
	// seen are the hashes of records that were looked up and not found here. A record is
	// kept from its second look-up on: most of those that are asked for once are not asked
	// for again, and would evict others.
	seen [seenRecords]uint32

	_ [64]byte // no two parts in one line of a processor's cache
}

// keptRecord is a copy of a record. Its key and value never change.
type keptRecord struct {
	hash  uint64
	key   []byte
	value []byte
	at    int // in the clock
	used  bool
}

func (r *keptRecord) size() int { return len(r.key) + len(r.value) + recordOverhead }

// newRecordCache makes a cache of so many bytes for the records of some tables; nil if
// there is nothing to keep.
func newRecordCache(bytes int64, tables []TableID) *RecordCache {
	most := int(bytes / recordParts)
	if most <= 0 || len(tables) == 0 {
		return nil
	}
	c := &RecordCache{seed: maphash.MakeSeed(), most: most}
	for _, t := range tables {
		c.tables[t] = true
	}
	for i := range c.parts {
		c.parts[i].by = map[uint64]*keptRecord{}
	}
	return c
}

// keeps reports whether records of a table are kept.
func (c *RecordCache) keeps(t TableID) bool { return c != nil && c.tables[t] }

// missed is a look-up that found nothing, for keep.
type missed struct {
	hash   uint64
	writes uint64
	closed bool // the record is new here, or is being written
}

func (c *RecordCache) part(hash uint64) *recordPart { return &c.parts[hash%recordParts] }

// find returns the record of a key, which must not be changed, or nil if it isn't kept.
func (c *RecordCache) find(key []byte) (value []byte, miss missed) {
	hash := maphash.Bytes(c.seed, key)
	p := c.part(hash)
	p.mu.Lock()
	if r := p.by[hash]; r != nil && bytes.Equal(r.key, key) {
		r.used = true
		p.hits++
		p.mu.Unlock()
		return r.value, missed{}
	}
	seen, mark := &p.seen[hash/recordParts%seenRecords], uint32(hash>>32)
	miss = missed{hash: hash, writes: p.writes, closed: p.writing > 0 || *seen != mark}
	*seen = mark
	p.misses++
	p.mu.Unlock()
	return nil, miss
}

// keep takes in a copy of what Pebble gave after a look-up that found nothing, unless the
// record may have been written since.
func (c *RecordCache) keep(key, value []byte, miss missed) {
	if miss.closed || len(value) > c.most/4 {
		return
	}
	r := &keptRecord{hash: miss.hash, key: bytes.Clone(key), value: bytes.Clone(value)}
	p := c.part(r.hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writing > 0 || p.writes != miss.writes {
		return
	}
	before := p.bytes
	if old := p.by[r.hash]; old != nil {
		p.drop(old)
	}
	for p.bytes+r.size() > c.most {
		p.evict()
	}
	r.at = len(p.clock)
	p.clock = append(p.clock, r)
	p.by[r.hash] = r
	p.bytes += r.size()
	c.bytes.Add(int64(p.bytes - before))
}

// evict drops the next record that was not used since the hand passed it.
func (p *recordPart) evict() {
	for {
		if p.hand >= len(p.clock) {
			p.hand = 0
		}
		r := p.clock[p.hand]
		if !r.used {
			p.drop(r)
			return
		}
		r.used = false
		p.hand++
	}
}

func (p *recordPart) drop(r *keptRecord) {
	last := p.clock[len(p.clock)-1]
	p.clock[r.at], last.at = last, r.at
	p.clock[len(p.clock)-1] = nil
	p.clock = p.clock[:len(p.clock)-1]
	delete(p.by, r.hash)
	p.bytes -= r.size()
}

// begin drops a record that is about to be written, and lets none of its part in until
// end is called with the hash that it returns.
func (c *RecordCache) begin(key []byte) (hash uint64) {
	hash = maphash.Bytes(c.seed, key)
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing++
	p.writes++
	if r := p.by[hash]; r != nil {
		c.bytes.Add(-int64(r.size()))
		p.drop(r)
	}
	return hash
}

func (c *RecordCache) end(hash uint64) {
	p := c.part(hash)
	p.mu.Lock()
	p.writing--
	p.mu.Unlock()
}

// beginRange is begin for all keys from start up to, and without, end.
func (c *RecordCache) beginRange(start, end []byte) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.writing++
		p.writes++
		for at := 0; at < len(p.clock); {
			r := p.clock[at]
			if bytes.Compare(start, r.key) <= 0 && bytes.Compare(r.key, end) < 0 {
				c.bytes.Add(-int64(r.size()))
				p.drop(r) // another one takes its place
				continue
			}
			at++
		}
		p.mu.Unlock()
	}
}

func (c *RecordCache) endRange() {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.writing--
		p.mu.Unlock()
	}
}

// touches reports whether a range of keys may hold records that are kept.
func (c *RecordCache) touches(start, end []byte) bool {
	if c == nil {
		return false
	}
	if len(start) <= prefixLen || len(end) <= prefixLen || !bytes.Equal(start[:prefixLen], end[:prefixLen]) {
		return true
	}
	for t := int(start[prefixLen]); t <= int(end[prefixLen]); t++ {
		if c.tables[t] {
			return true
		}
	}
	return false
}

// RecordCacheUse is what a cache of records holds and did.
type RecordCacheUse struct {
	Bytes        int64
	Hits, Misses uint64
}

// Use returns what the cache holds and did.
func (c *RecordCache) Use() RecordCacheUse {
	if c == nil {
		return RecordCacheUse{}
	}
	use := RecordCacheUse{Bytes: c.bytes.Load()}
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		use.Hits += p.hits
		use.Misses += p.misses
		p.mu.Unlock()
	}
	return use
}
