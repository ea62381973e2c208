package storage

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// PairsOrder asks for the TermPairs of a segment to be made on another goroutine than the one that searches. It has
// memory for them from the beginning, and gives that back when they can't be made or are of no use any longer.
type PairsOrder struct {
	Segment Segment

	dictionary int
	reserve    ReserveMemory // used by both goroutines
	pairs      atomic.Pointer[TermPairs]

	mu      sync.Mutex
	bytes   int64 // reserved
	ended   bool  // Make has
	dropped bool  // nobody searches any longer
}

var (
	errPairsDropped = errors.New("pairs of terms: the segment counts no longer")
	errPairsRoom    = errors.New("pairs of terms: no memory is left for them")
)

// Pairs gives the TermPairs of a segment. Where they are not there yet it has ask begin to make them, and returns
// pending until that has ended; ask returns false to be asked again. Where there is no memory for them, or they could
// not be made, it returns neither. The reader must have blocks in memory.
func (r *SegmentReader) Pairs(s *Segment, ask func(*PairsOrder) bool) (p *TermPairs, pending bool) {
	kept := r.blocks.of(s.Number)
	if kept.order == nil {
		bytes := pairsPeak(s.Docs)
		if !r.blocks.roomForPairs(kept, bytes) {
			return nil, false
		}
		order := &PairsOrder{Segment: *s, dictionary: r.blocks.dictionary, reserve: r.blocks.forColumns, bytes: bytes}
		if !ask(order) {
			r.blocks.forColumns(-bytes)
			return nil, false
		}
		kept.order = order
	}
	if p = kept.order.pairs.Load(); p == nil {
		return nil, !kept.order.hasEnded()
	}
	if kept.slices != nil {
		r.blocks.dropSlices(kept, s)
	}
	r.blocks.dropTerms(kept)
	return p, false
}

// roomForPairs takes memory for TermPairs of a segment. If there is not enough it gives up, once for a segment, what is
// kept of all lists: with the pairs they are not needed.
func (k *SegmentBlocks) roomForPairs(s *keptSegment, bytes int64) bool {
	if k.forColumns(bytes) {
		return true
	}
	if s.refused {
		return false
	}
	s.refused = true
	for _, other := range k.segments {
		k.dropTerms(other)
	}
	return k.forColumns(bytes)
}

// dropTerms gives back the memory of the blocks of terms of a segment.
func (k *SegmentBlocks) dropTerms(s *keptSegment) {
	if s.ofTerms > 0 {
		k.forTerms(-s.ofTerms)
		s.terms, s.ofTerms = nil, 0
	}
}

// Make makes the TermPairs from rows that have the segment. It calls pause again and again, and ends with its error.
func (o *PairsOrder) Make(s *Segments, from Reader, pause func() error) error {
	p, err := o.make(s, from, pause)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	left := int64(0)
	if err == nil && !o.dropped {
		left = p.bytes()
		o.pairs.Store(p)
	}
	o.reserve(left - o.bytes)
	o.bytes = left
	if err != nil {
		return fmt.Errorf("make pairs of terms: %w", err)
	}
	return nil
}

// GiveUp ends an order that Make was not called for.
func (o *PairsOrder) GiveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.reserve(-o.bytes)
		o.ended, o.bytes = true, 0
	}
}

func (o *PairsOrder) make(s *Segments, from Reader, pause func() error) (p *TermPairs, err error) {
	r, err := s.Reader(from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.makePairs(&o.Segment, o.dictionary, func(bytes int64) error {
		if err := o.take(bytes); err != nil {
			return err
		}
		return pause()
	})
}

// take reserves memory until there are so many bytes.
func (o *PairsOrder) take(bytes int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.dropped:
		return errPairsDropped
	case bytes <= o.bytes:
		return nil
	case !o.reserve(bytes - o.bytes):
		return errPairsRoom
	}
	o.bytes = bytes
	return nil
}

func (o *PairsOrder) hasEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

// drop ends the use of the TermPairs. Those that are being made are given up.
func (o *PairsOrder) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped = true
	if o.ended {
		o.reserve(-o.bytes)
		o.bytes = 0
	}
}
