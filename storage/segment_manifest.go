package storage

import (
	"encoding/binary"
	"fmt"
)

// Segment is what a Manifest says of a segment.
type Segment struct {
	Number uint32
	// Age is the number of the newest of the segments that it was merged from, or its
	// own. A doc's postings in a segment count unless one of a higher age replaces
	// them.
	Age    uint32
	Docs   uint32
	Length uint64 // of all docs
	Newest Doc
}

// Manifest says which segments count, the oldest first. It changes with the batch that
// completes a segment, so that readers see a segment as a whole or not at all.
type Manifest struct {
	// Through is the newest doc that was there when the newest segment was made.
	Through Doc
	Next    uint32 // number of the next segment
	// Flushing and Merging are the segments that are being written, of new postings and
	// of those of others; 0: none. A segment that an earlier owner of the workspace
	// began is never completed, and is deleted when the next one is begun.
	Flushing, Merging uint32
	Segments          []Segment
	// Replaced is about how many docs have postings that don't count any longer.
	Replaced uint64
	// Settled is the age up to which no replaced postings are left.
	Settled uint32
}

// Begun gives the field for the segment that is being written.
func (m *Manifest) Begun(merge bool) *uint32 {
	if merge {
		return &m.Merging
	}
	return &m.Flushing
}

// Encode appends the stored form.
func (m *Manifest) Encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, 1), uint64(m.Through))
	for _, n := range [...]uint64{uint64(m.Next), uint64(m.Flushing), uint64(m.Merging), m.Replaced, uint64(m.Settled)} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Segments)))
	for _, s := range m.Segments {
		for _, n := range [...]uint64{uint64(s.Number), uint64(s.Age), uint64(s.Docs), s.Length, uint64(s.Newest)} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// ParseManifest reads the stored form; nil is an empty manifest.
func ParseManifest(b []byte) (m Manifest, err error) {
	if b == nil {
		return Manifest{}, nil
	}
	whole, bad := b, len(b) == 0 || b[0] != 1
	number := func() uint64 {
		if bad {
			return 0
		}
		n, size := binary.Uvarint(b)
		if size <= 0 {
			bad = true
			return 0
		}
		b = b[size:]
		return n
	}
	if !bad {
		b = b[1:]
	}
	m.Through, m.Next = Doc(number()), uint32(number())
	m.Flushing, m.Merging = uint32(number()), uint32(number())
	m.Replaced, m.Settled = number(), uint32(number())
	for n := number(); n > 0 && !bad; n-- {
		m.Segments = append(m.Segments, Segment{uint32(number()), uint32(number()), uint32(number()), number(), Doc(number())})
	}
	if bad || len(b) > 0 {
		return Manifest{}, fmt.Errorf("%w: manifest of %d bytes", ErrFormat, len(whole))
	}
	return m, nil
}

// mergeFanout is how many segments of about a size are merged into one: a doc's
// postings are written about log(docs)/log(fanout) times in its life.
const mergeFanout = 4

// tier is the size class of a segment.
func (s *Segment) tier() (t int) {
	for n := s.Docs; n >= mergeFanout; n /= mergeFanout {
		t++
	}
	return t
}

// ToMerge chooses neighboring segments to merge into one, [from, to) of Segments; none
// when their sizes are as they should be. Of each size class there are less than
// mergeFanout; a segment is merged together with what is newer and smaller. When a
// quarter of all docs have postings that don't count, everything is merged, once: until that
// merge is settled, Replaced counts docs which it has dropped.
func (m *Manifest) ToMerge() (from, to int) {
	docs := uint64(0)
	for i := range m.Segments {
		docs += uint64(m.Segments[i].Docs)
	}
	if m.Settled == 0 && m.Replaced > replacedAtLeast && 4*m.Replaced > docs {
		return 0, len(m.Segments)
	}
	for i := range m.Segments {
		t, same, largest := m.Segments[i].tier(), 0, 0
		for j := i; j < len(m.Segments); j++ {
			largest = max(largest, m.Segments[j].tier())
			if m.Segments[j].tier() == t {
				same++
			}
		}
		if largest > t || same < mergeFanout {
			continue
		}
		for i > 0 && m.Segments[i-1].tier() < t {
			i--
		}
		return i, len(m.Segments)
	}
	return 0, 0
}

// replacedAtLeast is how many replaced docs are worth a merge of everything.
const replacedAtLeast = 512

// Replace puts a merged segment in the place of those it was made from, which are
// told by their numbers; false when they are not there as neighbors any longer.
func (m *Manifest) Replace(merged Segment, of []uint32) bool {
	for i := 0; i+len(of) <= len(m.Segments); i++ {
		match := true
		for j, n := range of {
			match = match && m.Segments[i+j].Number == n
		}
		if match {
			merged.Age = m.Segments[i+len(of)-1].Age
			rest := append([]Segment(nil), m.Segments[i+len(of):]...)
			m.Segments = append(m.Segments[:i], rest...)
			if merged.Docs > 0 {
				m.Segments = append(append(append([]Segment(nil), m.Segments[:i]...), merged), rest...)
			}
			return true
		}
	}
	return false
}
