package storage

import (
	"bytes"
	"hash/maphash"
	"math"
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
// here. A reader of a snapshot finds those records alone that were not written since it was taken.
//
// Keys begin with shard and workspace, so a record is never found from another workspace.
type RecordCache struct {
	seed   maphash.Seed
	tables [256]bool // those whose records are kept
	listed [256]bool // those of them whose records are also found by their docs
	most   int       // bytes of a part
	parts  [recordParts]recordPart

	bytes atomic.Int64
	ended atomic.Uint64 // writes that have ended, a batch being one
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
	written uint64 // RecordCache.ended of the last one that has ended

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
	since uint64 // RecordCache.ended from which on the record has been this one, or later
	at    int    // in the clock
	used  bool
}

func (r *keptRecord) size() int { return len(r.key) + len(r.value) + recordOverhead }

// newRecordCache makes a cache of so many bytes for the records of some tables, and of those that
// are listed; nil if there is nothing to keep.
func newRecordCache(bytes int64, tables, listed []TableID) *RecordCache {
	most := int(bytes / recordParts)
	if most <= 0 || len(tables) == 0 {
		return nil
	}
	c := &RecordCache{seed: maphash.MakeSeed(), most: most}
	for _, t := range tables {
		c.tables[t] = true
	}
	for _, t := range listed {
		c.listed[t] = c.tables[t]
	}
	for i := range c.parts {
		c.parts[i].by = map[uint64]*keptRecord{}
	}
	return c
}

// keeps reports whether records of a table are kept.
func (c *RecordCache) keeps(t TableID) bool { return c != nil && c.tables[t] }

// RecordMoment lets a view that reads one moment, or each time the present one, use a cache. The
// zero value lets it use none.
type RecordMoment struct {
	cache *RecordCache
	// ended is RecordCache.ended at the moment, or always.
	ended uint64
}

// always stands for the moment of each look-up.
const always = math.MaxUint64

// Now gives the moment to a reader that takes its snapshot after it.
func (c *RecordCache) Now() RecordMoment {
	if c == nil {
		return RecordMoment{}
	}
	return RecordMoment{c, c.ended.Load()}
}

// Always gives the moments of a reader of the state instance itself.
func (c *RecordCache) Always() RecordMoment { return RecordMoment{c, always} }

// fixed gives the present moment in place of those of each look-up, for a reader that takes its
// snapshot after it.
func (m RecordMoment) fixed() RecordMoment {
	if m.ended == always {
		return m.cache.Now()
	}
	return m
}

func (m RecordMoment) keeps(t TableID) bool { return m.cache.keeps(t) }

// missed is a look-up that found nothing, for keep.
type missed struct {
	hash  uint64
	ended uint64 // the moment that is read
	first bool   // look-up of the record for long
}

// hash gives that of a key, or of the beginning of a listed record's key with its doc.
func (c *RecordCache) hash(key []byte) uint64 {
	if c.listed[key[prefixLen]] {
		key = key[:min(len(key), prefixLen+1+DocKeyLen)]
	}
	return maphash.Bytes(c.seed, key)
}

// names reports whether a key, or the beginning of it that hash takes, is that of a record.
func (c *RecordCache) names(key []byte, r *keptRecord) bool {
	return bytes.HasPrefix(r.key, key) && (len(r.key) == len(key) || c.listed[key[prefixLen]])
}

func (c *RecordCache) part(hash uint64) *recordPart { return &c.parts[hash%recordParts] }

// find returns the record of a key, which must not be changed, or nil if it isn't kept. In listed
// tables the key's beginning with the doc is enough.
func (m RecordMoment) find(key []byte) (r *keptRecord, miss missed) {
	c := m.cache
	hash := c.hash(key)
	ended := m.ended
	if ended == always {
		ended = c.ended.Load()
	}
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.by[hash]; r != nil && r.since <= m.ended && c.names(key, r) {
		r.used = true
		p.hits++
		return r, missed{}
	}
	seen, mark := &p.seen[hash/recordParts%seenRecords], uint32(hash>>32)
	miss = missed{hash: hash, ended: ended, first: *seen != mark}
	*seen = mark
	p.misses++
	return nil, miss
}

// keep takes in a copy of what Pebble gave after a look-up that found nothing, unless the
// record may have been written since the moment that was read.
func (m RecordMoment) keep(key, value []byte, miss missed) {
	c := m.cache
	if miss.first || len(value) > c.most/4 {
		return
	}
	p := c.part(miss.hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writing > 0 || p.written > miss.ended {
		return
	}
	r := &keptRecord{hash: miss.hash, key: bytes.Clone(key), value: bytes.Clone(value), since: p.written}
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
	hash = c.hash(key)
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing++
	if r := p.by[hash]; r != nil {
		c.bytes.Add(-int64(r.size()))
		p.drop(r)
	}
	return hash
}

// end tells that writes which begin was called for have ended.
func (c *RecordCache) end(hashes []uint64) {
	if len(hashes) == 0 {
		return
	}
	ended := c.ended.Add(1)
	for _, hash := range hashes {
		c.part(hash).end(ended)
	}
}

func (p *recordPart) end(ended uint64) {
	p.mu.Lock()
	p.writing--
	p.written = max(p.written, ended)
	p.mu.Unlock()
}

// beginRange is begin for all keys from start up to, and without, end.
func (c *RecordCache) beginRange(start, end []byte) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.writing++
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
	ended := c.ended.Add(1)
	for i := range c.parts {
		c.parts[i].end(ended)
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
