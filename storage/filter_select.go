package storage

import (
	"slices"
	"sort"
	"sync"
)

// FilterQuery says which records are asked for: those that satisfy every one of
// Matches, of which each is of Equal, AnyOf, Referenced or Nothing, and none of
// Without.
type FilterQuery struct {
	Matches []Match
	Without []Without
	// AwakeAt leaves out the records that sleep longer; 0: none.
	AwakeAt int64
	// Enough is how many records are enough, newest first; 0: all are asked for.
	Enough int
}

// Without leaves out the records that satisfy Match, but for those that satisfy any of
// Unless.
type Without struct {
	Match  Match
	Unless []Match
}

// Covers reports whether sets can answer a match.
func (f *FilterSets) Covers(m Match) bool {
	switch m.kind {
	case matchEqual:
		return f.kinds[m.index] >= rowIndex
	case matchReferenced:
		return m.index == f.spec.Referenced
	case matchAny:
		for _, part := range m.any {
			if part.kind != matchEqual || !f.Covers(part) {
				return false
			}
		}
		return true
	case matchNothing:
		return true
	}
	return false
}

// Selection is what sets say of a query at one moment. It streams the docs of the
// records, newest first.
type Selection struct {
	docs []Doc
	// Either the ordinals are listed, highest first, or they are bits.
	list  []uint32
	words []uint64
	bits  bool
	at    int // place in the list, or the ordinal that no later one is above
	// more: there may be further records behind those that are enough.
	more bool
}

var selections = sync.Pool{New: func() any { return new(Selection) }}

// Close gives the selection's memory back. It must not be used afterwards.
func (s *Selection) Close() error {
	s.docs = nil
	selections.Put(s)
	return nil
}

// More reports whether there may be records behind those that were enough.
func (s *Selection) More() bool { return s.more }

// Next implements Docs.
func (s *Selection) Next(most Doc) (Doc, bool, error) {
	if !s.bits {
		for s.at < len(s.list) && s.docs[s.list[s.at]] > most {
			s.at++
		}
		if s.at == len(s.list) {
			return 0, false, nil
		}
		return s.docs[s.list[s.at]], true, nil
	}
	if s.at >= 0 && s.docs[s.at] > most {
		s.at = s.below(most)
	}
	for s.at >= 0 {
		if x := s.words[s.at/64] << (63 - s.at%64); x != 0 {
			s.at -= 63 - highest(x)
			return s.docs[s.at], true, nil
		}
		s.at = s.at/64*64 - 1
	}
	return 0, false, nil
}

// below gives the highest ordinal, under the present one, whose doc is not above most.
func (s *Selection) below(most Doc) int {
	width := 1
	for width < s.at && s.docs[s.at-width] > most {
		width *= 2
	}
	low := max(s.at-width, 0)
	return low + sort.Search(s.at-low, func(i int) bool { return s.docs[low+i] > most }) - 1
}

// Select answers a query as of the moment that v reads, from the doc of after on (a
// primary key; nil: from the newest). stale says that the sets are of a later moment:
// another view is needed. Without a selection and not stale the sets can't answer.
func (f *FilterSets) Select(v *View, q *FilterQuery, after []byte) (s *Selection, stale bool, err error) {
	if !f.Ready() {
		return nil, false, nil
	}
	version, err := f.spec.VersionAt(v)
	if err != nil {
		return nil, false, err
	}
	f.mu.RLock()
	for f.version < version || q.AwakeAt > 0 && f.sleep.due(q.AwakeAt) {
		f.mu.RUnlock()
		f.mu.Lock()
		f.catchUp(version, 1<<62)
		if f.version < version {
			f.Break() // a batch was not noted
		}
		f.sleep.wake(q.AwakeAt)
		f.mu.Unlock()
		f.mu.RLock()
		if f.Broken() {
			break
		}
	}
	defer f.mu.RUnlock()
	if f.Broken() {
		return nil, false, nil
	}
	if f.version > version {
		return nil, true, nil
	}
	return f.run(q, after), false, nil
}

// run computes a selection. The sets' lock is held.
func (f *FilterSets) run(q *FilterQuery, after []byte) *Selection {
	s := selections.Get().(*Selection)
	*s = Selection{docs: f.docs, list: s.list[:0], words: s.words[:0]}
	below := len(f.docs)
	if len(after) > 0 {
		below = f.upTo(DocOfKey(after))
	}
	p := filterPlan{f: f, below: uint32(below)}
	for _, m := range q.Matches {
		if !p.require(m) {
			return s
		}
	}
	for _, w := range q.Without {
		p.exclude(w)
	}
	if q.AwakeAt > 0 && f.sleep.asleep.count > 0 {
		p.without = append(p.without, exclusion{sets: anyOf{newSetCursor(&f.sleep.asleep, p.below)}})
	}
	if driver := p.driver(); driver >= 0 {
		p.walk(driver, s, q.Enough)
	} else {
		if len(p.all) == 0 {
			p.all = append(p.all, anyOf{newSetCursor(&f.live, p.below)})
		}
		p.intersect(s, q.Enough)
	}
	return s
}

// filterPlan is a query as sets.
type filterPlan struct {
	f       *FilterSets
	below   uint32 // ordinals from here on are not asked for
	all     []anyOf
	without []exclusion
}

type exclusion struct{ sets, unless anyOf }

func (p *filterPlan) set(m Match) *filterSet {
	if m.kind == matchReferenced {
		return &p.f.parents
	}
	key := append(append(make([]byte, 0, 64), byte(m.index)), m.fields...)
	return p.f.sets[string(key)]
}

// union gives the sets of a match that have anything.
func (p *filterPlan) union(m Match) (sets anyOf) {
	parts := m.any
	if m.kind != matchAny {
		parts = []Match{m}
	}
	for _, part := range parts {
		if s := p.set(part); s != nil && s.count > 0 && part.kind != matchNothing {
			sets = append(sets, newSetCursor(s, p.below))
		}
	}
	return sets
}

// require adds a match; false when nothing satisfies it.
func (p *filterPlan) require(m Match) bool {
	sets := p.union(m)
	p.all = append(p.all, sets)
	return len(sets) > 0
}

func (p *filterPlan) exclude(w Without) {
	x := exclusion{sets: p.union(w.Match)}
	if len(x.sets) == 0 {
		return
	}
	for _, m := range w.Unless {
		x.unless = append(x.unless, p.union(m)...)
	}
	p.without = append(p.without, x)
}

// driver chooses the match with the shortest list; -1 when all are bitmaps.
func (p *filterPlan) driver() int {
	best, least := -1, 0
	for i, sets := range p.all {
		if n, ok := sets.listed(); ok && (best < 0 || n < least) {
			best, least = i, n
		}
	}
	return best
}

// walk goes through the elements of one match and looks each up in the others.
func (p *filterPlan) walk(driver int, s *Selection, enough int) {
	sets := p.all[driver]
	p.all = slices.Delete(p.all, driver, driver+1)
	for {
		ord, ok := sets.next()
		if !ok {
			return
		}
		if !p.has(ord) {
			continue
		}
		s.list = append(s.list, ord)
		if len(s.list) == enough {
			s.more = true
			return
		}
	}
}

func (p *filterPlan) has(ord uint32) bool {
	for _, sets := range p.all {
		if !sets.has(ord) {
			return false
		}
	}
	for i := range p.without {
		if x := &p.without[i]; x.sets.has(ord) && !x.unless.has(ord) {
			return false
		}
	}
	return true
}

// intersect goes through the bitmaps, 64 records at a time.
func (p *filterPlan) intersect(s *Selection, enough int) {
	if p.below == 0 {
		return
	}
	top := int(p.below-1) / 64
	mask := ^uint64(0) >> (63 - (p.below-1)%64)
	if enough == 0 {
		s.bits, s.at = true, int(p.below)-1
		s.words = slices.Grow(s.words, top+1)[:top+1]
	}
	for w := top; w >= 0; w-- {
		x := p.word(w) & mask
		mask = ^uint64(0)
		if enough == 0 {
			s.words[w] = x
			continue
		}
		for x != 0 {
			at := highest(x)
			x &^= 1 << at
			s.list = append(s.list, uint32(w*64+at))
			if len(s.list) == enough {
				s.more = true
				return
			}
		}
	}
}

func (p *filterPlan) word(w int) uint64 {
	x := ^uint64(0)
	for _, sets := range p.all {
		if x &= sets.word(w); x == 0 {
			return 0
		}
	}
	for i := range p.without {
		if out := p.without[i].sets.word(w); out&x != 0 {
			x &^= out &^ p.without[i].unless.word(w)
		}
	}
	return x
}
