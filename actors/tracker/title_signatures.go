package tracker

import (
	"math/bits"

	"switchyard/storage"
)

// titleSignatures remembers a second signature of the titles that the index has. The index keeps the first
// one. Among many issues the first signatures of some have enough terms of a new title by chance, and
// reading these issues takes about half of the time of a search for duplicates. The second signature leaves
// nearly all of them out. A title that is not remembered costs the read, and is remembered then.
//
// A title that changes is among the recent ones until the index has it again, and is put here then. The
// workspace's goroutine owns the signatures.
type titleSignatures struct {
	slots []titleSignature // buckets of bucketSlots
	used  int
	turn  int // which slot of a full bucket is used next
}

// titleSignature is a slot. It is free without a doc.
type titleSignature struct {
	doc    storage.Doc
	second uint64
}

const (
	signatureBytes = 16 // of a slot
	// bucketSlots is how many slots are in one line of the processor's cache.
	bucketSlots = 4
	// fewSlots is how many slots there are at first.
	fewSlots = 32 * bucketSlots
)

// bucket gives the slots in which a doc may be.
func (s *titleSignatures) bucket(doc storage.Doc) []titleSignature {
	n := uint64(len(s.slots) / bucketSlots)
	at, _ := bits.Mul64(uint64(doc)*0x9e3779b97f4a7c15, n) // docs grow with time: the product spreads them
	return s.slots[at*bucketSlots:][:bucketSlots]
}

// find returns the second signature of an issue's title, and false if it is not known.
func (s *titleSignatures) find(doc storage.Doc) (second uint64, known bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	for _, slot := range s.bucket(doc) {
		if slot.doc == doc {
			return slot.second, true
		}
	}
	return 0, false
}

// put remembers the second signature of an issue's title, maybe in the place of another one's.
func (s *titleSignatures) put(doc storage.Doc, second uint64, tails *Tails) {
	if s.used >= len(s.slots)*3/4 {
		s.grow(tails)
	}
	if len(s.slots) == 0 {
		return
	}
	bucket := s.bucket(doc)
	at := -1
	for i := range bucket {
		if bucket[i].doc == doc {
			bucket[i].second = second
			return
		}
		if bucket[i].doc == 0 && at < 0 {
			at = i
		}
	}
	if at < 0 {
		s.turn++
		at = s.turn % bucketSlots
	} else {
		s.used++
	}
	bucket[at] = titleSignature{doc, second}
}

// grow doubles the slots, if the node has the memory for it.
func (s *titleSignatures) grow(tails *Tails) {
	old := s.slots
	slots := max(fewSlots, 2*len(old))
	if !tails.reserve(int64(slots-len(old)) * signatureBytes) {
		return
	}
	s.slots, s.used = make([]titleSignature, slots), 0
	for _, slot := range old {
		if slot.doc != 0 {
			s.put(slot.doc, slot.second, tails)
		}
	}
}

// forget forgets all signatures.
func (s *titleSignatures) forget(tails *Tails) {
	tails.unreserve(int64(len(s.slots)) * signatureBytes)
	*s = titleSignatures{}
}
