package storage

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// FilterSpec says which rows of a workspace FilterSets are made from.
type FilterSpec struct {
	// Table has the records that are listed; its primary keys are made by Key.Newest.
	Table TableID
	// Indexes have entries that end in the primary key, Leading ones that begin with it.
	Indexes, Leading []TableID
	// Owned have entries that begin with the id of a record, made by Key.ID, any number for
	// one record. Together they are one value, which a record has as long as there is an
	// entry of it that counts.
	Owned []OwnedRows
	// Referenced is one of Indexes; its entries begin with the primary key of another
	// record of the table.
	Referenced TableID
	// Version is a counter. Each batch that changes any of these rows moves it, and it
	// never has the same value again.
	Version TableID
	// Sleeps gives until when a record is left out of lists, in milliseconds; 0: it isn't.
	Sleeps func(Record) int64
}

// OwnedRows are rows that belong to records. Counts reports whether a row counts, by its
// fields; nil: every one does.
type OwnedRows struct {
	Table  TableID
	Counts func(fields []byte) bool
}

// FilterSets hold in memory, for each value that a list of one workspace can be
// filtered by, the set of records that have it, so that any combination of filters
// costs some operations on bitmaps instead of a walk through indexes. Records are
// numbered in the order of creation; the numbers are called ordinals.
//
// The sets belong to one moment, which the version says. The workspace's goroutine
// notes each batch before it is proposed. A list that reads a later moment brings the
// sets up to it first; the versions say whether a batch is missing or counts already.
// Sets that can't be brought to a moment are broken, for good: lists do without.
//
// Roaring bitmaps were looked at. They compute an intersection as a whole, into new
// memory, where a page needs its newest elements and these structures none.
type FilterSets struct {
	spec   *FilterSpec
	epoch  uint64
	kinds  [256]rowKind // by table
	broken atomic.Bool
	ready  atomic.Bool
	bytes  atomic.Int64 // of all, as last added up

	mu      sync.RWMutex // guards what follows
	version uint64
	docs    []Doc     // by ordinal; elements are never changed
	live    filterSet // the records that are there
	sets    map[string]*filterSet
	parents filterSet // the records that are referenced
	setSize int       // bytes of sets, parents and live
	sleep   sleepers
	// owned counts the entries of records that have more than one in Owned rows.
	owned map[ownedBy]int
	key   []byte // scratch

	noted notedBatches
}

// rowKind says what FilterSets make of a table's rows.
type rowKind byte

const (
	rowOther rowKind = iota
	rowRecord
	rowIndex
	rowLeading
	rowOwned
)

// ownedBy is a record with entries in Owned rows.
type ownedBy struct {
	table TableID
	ord   uint32
}

// NewFilterSets makes sets that are to be built. epoch says in which time of ownership
// they are valid.
func NewFilterSets(spec *FilterSpec, epoch uint64) *FilterSets {
	f := &FilterSets{spec: spec, epoch: epoch, sets: map[string]*filterSet{}}
	f.kinds[spec.Table] = rowRecord
	for _, t := range spec.Indexes {
		f.kinds[t] = rowIndex
	}
	for _, t := range spec.Leading {
		f.kinds[t] = rowLeading
	}
	for _, o := range spec.Owned {
		f.kinds[o.Table] = rowOwned
	}
	return f
}

// Epoch is the one given to NewFilterSets.
func (f *FilterSets) Epoch() uint64 { return f.epoch }

// Break makes the sets unusable.
func (f *FilterSets) Break() { f.broken.Store(true) }

// Broken reports whether the sets are of no use any more.
func (f *FilterSets) Broken() bool { return f.broken.Load() }

// Ready reports whether lists can use the sets.
func (f *FilterSets) Ready() bool { return f.ready.Load() && !f.broken.Load() }

// Bytes is about what the sets take in memory.
func (f *FilterSets) Bytes() int64 { return f.bytes.Load() + f.noted.size() }

// measure adds up what the sets take.
func (f *FilterSets) measure() {
	f.bytes.Store(int64(8*cap(f.docs) + f.setSize + f.sleep.size() + 64*len(f.owned)))
}

// ord gives the ordinal of a doc; false when there is none.
func (f *FilterSets) ord(doc Doc) (uint32, bool) {
	if n := len(f.docs); n > 0 && f.docs[n-1] == doc {
		return uint32(n - 1), true
	}
	at, found := slices.BinarySearch(f.docs, doc)
	return uint32(at), found
}

// reach gives the ordinal of a doc, a new one if it is newer than all others.
func (f *FilterSets) reach(doc Doc) (uint32, bool) {
	if n := len(f.docs); n == 0 || f.docs[n-1] < doc {
		f.docs = append(f.docs, doc)
		return uint32(n), true
	}
	return f.ord(doc)
}

// upTo gives how many ordinals have docs that are not newer than most.
func (f *FilterSets) upTo(most Doc) int {
	return sort.Search(len(f.docs), func(i int) bool { return f.docs[i] > most })
}

// change adds an ordinal to the set of an index's value, or takes it out.
func (f *FilterSets) change(table TableID, fields []byte, ord uint32, in bool) {
	if f.kinds[table] == rowOwned && !f.countOwned(table, ord, in) {
		return
	}
	f.key = append(append(f.key[:0], byte(table)), fields...)
	s := f.sets[string(f.key)]
	switch {
	case s == nil && !in:
		return
	case s == nil:
		s = &filterSet{}
		f.sets[string(f.key)] = s
		f.setSize += filterSetBytes + len(f.key)
	}
	f.alter(s, ord, in)
	if table == f.spec.Referenced && len(fields) >= ListedKeyLen {
		parent, found := f.ord(DocOfKey(fields))
		switch {
		case found:
			f.alter(&f.parents, parent, s.count > 0)
		case in:
			f.Break() // it comes later, as an import may have it
		}
	}
	if s.count == 0 {
		delete(f.sets, string(f.key))
		f.setSize -= s.size() + len(f.key)
	}
}

// countOwned counts an entry of a record in Owned rows, and reports whether it is the
// first that came or the last that went.
func (f *FilterSets) countOwned(table TableID, ord uint32, in bool) bool {
	by := ownedBy{table, ord}
	more := f.owned[by] // entries beside the first
	s := f.sets[string([]byte{byte(table)})]
	switch has := s != nil && s.has(ord); {
	case in && !has, !in && more == 0:
		return true
	case in:
		if f.owned == nil {
			f.owned = map[ownedBy]int{}
		}
		f.owned[by] = more + 1
	case more == 1:
		delete(f.owned, by)
	default:
		f.owned[by] = more - 1
	}
	return false
}

// counts reports whether a row of an Owned table counts.
func (f *FilterSets) counts(table TableID, fields []byte) bool {
	for _, o := range f.spec.Owned {
		if o.Table == table {
			return o.Counts == nil || o.Counts(fields)
		}
	}
	return false
}

func (f *FilterSets) alter(s *filterSet, ord uint32, in bool) {
	before := s.size()
	if in {
		s.add(ord, len(f.docs))
	} else {
		s.remove(ord)
	}
	f.setSize += s.size() - before
}

// record notes that a record was written.
func (f *FilterSets) record(ord uint32, sleepsUntil int64) {
	f.alter(&f.live, ord, true)
	f.sleep.set(ord, sleepsUntil, len(f.docs))
}

// gone notes that a record was deleted.
func (f *FilterSets) gone(ord uint32) {
	f.alter(&f.live, ord, false)
	f.sleep.set(ord, 0, len(f.docs))
	// Ordinals aren't used again; sets of which most are gone are better built anew.
	if len(f.docs) > 4096 && len(f.docs) > 2*f.live.count {
		f.Break()
	}
}

// VersionAt gives the version of the moment that a view reads.
func (s *FilterSpec) VersionAt(v *View) (uint64, error) {
	var zero [16]byte
	return v.Number(s.Version, zero[:])
}

// sleepers are the records that are left out of lists for a time.
type sleepers struct {
	asleep filterSet
	until  map[uint32]int64
	// order has the times at which records wake, as a heap with the next one first; it
	// may have times that don't count any more.
	order []waking
	// woken is up to when records were woken.
	woken int64
}

type waking struct {
	at  int64
	ord uint32
}

func (s *sleepers) size() int { return s.asleep.size() + 64*len(s.until) + 16*cap(s.order) }

// set notes until when a record sleeps; 0 for one that does not.
func (s *sleepers) set(ord uint32, until int64, all int) {
	if until <= s.woken {
		if _, was := s.until[ord]; was {
			delete(s.until, ord)
			s.asleep.remove(ord)
		}
		return
	}
	if s.until == nil {
		s.until = map[uint32]int64{}
	}
	s.until[ord] = until
	s.asleep.add(ord, all)
	if len(s.order) > 64 && len(s.order) > 2*len(s.until) {
		s.order = s.order[:0]
		for ord, at := range s.until {
			s.push(waking{at, ord})
		}
		return
	}
	s.push(waking{until, ord})
}

// due reports whether wake would change anything.
func (s *sleepers) due(now int64) bool { return len(s.order) > 0 && s.order[0].at <= now }

// wake takes out the records that don't sleep any more.
func (s *sleepers) wake(now int64) {
	for s.due(now) {
		w := s.pop()
		if s.until[w.ord] == w.at {
			delete(s.until, w.ord)
			s.asleep.remove(w.ord)
		}
	}
	s.woken = max(s.woken, now)
}

func (s *sleepers) push(w waking) {
	s.order = append(s.order, w)
	for i := len(s.order) - 1; i > 0; {
		up := (i - 1) / 2
		if s.order[up].at <= s.order[i].at {
			return
		}
		s.order[up], s.order[i] = s.order[i], s.order[up]
		i = up
	}
}

func (s *sleepers) pop() waking {
	first, n := s.order[0], len(s.order)-1
	s.order[0] = s.order[n]
	s.order = s.order[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if s.order[child].at < s.order[least].at {
				least = child
			}
		}
		if least == i {
			return first
		}
		s.order[least], s.order[i] = s.order[i], s.order[least]
		i = least
	}
}

// appendDoc and docIn write docs of noted operations.
func appendDoc(b []byte, d Doc) []byte { return binary.BigEndian.AppendUint64(b, uint64(d)) }

func docIn(b []byte) Doc { return Doc(binary.BigEndian.Uint64(b)) }
