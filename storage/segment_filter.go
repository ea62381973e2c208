package storage

import "encoding/binary"

// TermFilter tells which terms a dictionary of a segment may have, a Bloom filter: of the
// terms that are not there it takes one in a hundred for one that is.
type TermFilter []byte

const (
	filterBits   = 10 // of each term
	filterProbes = 7
	filterBytes  = 32 << 10 // of a row
)

// newTermFilter makes the filter of some terms, which are hashes.
func newTermFilter(terms []uint64) TermFilter {
	f := make(TermFilter, (len(terms)*filterBits+7)/8)
	for _, t := range terms {
		f.probe(t, func(at *byte, bit byte) bool { *at |= bit; return true })
	}
	return f
}

func (f TermFilter) probe(term uint64, fn func(at *byte, bit byte) bool) bool {
	n := uint64(len(f)) * 8
	for i, step := term, term>>32|term<<32|1; n > 0; i += step {
		if !fn(&f[i%n/8], 1<<(i%8)) {
			return false
		}
		if i-term == step*(filterProbes-1) {
			break
		}
	}
	return n > 0
}

// MayHave reports whether the term may be there; if not, it certainly is not.
func (f TermFilter) MayHave(term uint64) bool {
	return f.probe(term, func(at *byte, bit byte) bool { return *at&bit != 0 })
}

// write adds the rows of a filter.
func (f TermFilter) write(segment uint32, out *segmentRows) {
	for i := 0; i < len(f); i += filterBytes {
		out.add(binary.BigEndian.AppendUint32(segmentKey(segment, filterColumn), uint32(i/filterBytes)), f[i:min(i+filterBytes, len(f))])
	}
}

// Filter reads the filter of the dictionary that has one.
func (r *SegmentReader) Filter(segment uint32) (f TermFilter, err error) {
	f = TermFilter{}
	prefix := r.prefix(segment, filterColumn)
	err = r.v.Rows(r.s.ID, prefix, nil, func(_, value []byte) (bool, error) {
		f = append(f, value...)
		return true, nil
	})
	return f, r.wrap(err)
}
