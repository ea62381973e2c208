package storage

import "bytes"

// Entries collects the index keys of a record.
type Entries struct {
	prefix [prefixLen]byte // of the workspace
	system [prefixLen]byte // of the shard's own range
	pk     []byte
	index  TableID
	unique bool
	wide   bool
	key    []byte
	buf    []byte
	spans  []span
}

type span struct {
	start, end int
	unique     bool
}

// begin starts on a record of a workspace.
func (e *Entries) begin(prefix [prefixLen]byte, pk []byte) {
	e.prefix = prefix
	e.system = [prefixLen]byte{prefix[0], prefix[1]}
	e.pk = append(e.pk[:0], pk...)
	e.buf, e.spans = e.buf[:0], e.spans[:0]
}

// Key starts the fields of one entry.
func (e *Entries) Key() Key {
	if e.wide {
		e.key = append(e.key[:0], e.system[:]...)
	} else {
		e.key = append(e.key[:0], e.prefix[:]...)
	}
	e.key = append(e.key, byte(e.index))
	return e.key
}

// Add ends an entry begun with Key.
func (e *Entries) Add(k Key) {
	e.key = k
	start := len(e.buf)
	e.buf = append(e.buf, k...)
	if !e.unique {
		if e.wide {
			e.buf = append(e.buf, e.prefix[2:]...)
		}
		e.buf = append(e.buf, e.pk...)
	}
	e.spans = append(e.spans, span{start: start, end: len(e.buf), unique: e.unique})
}

func (e *Entries) at(s span) []byte { return e.buf[s.start:s.end] }

// value returns the value stored under an entry.
func (e *Entries) value(s span) []byte {
	if s.unique {
		return e.pk
	}
	return nil
}

// has reports whether any of the spans has the key of s.
func (e *Entries) has(spans []span, s span) bool {
	key := e.at(s)
	for _, other := range spans {
		if bytes.Equal(e.at(other), key) {
			return true
		}
	}
	return false
}

// each calls fn for every entry, once for an entry that the record yields several times.
func (e *Entries) each(fn func(key, value []byte)) {
	for i, s := range e.spans {
		if !e.has(e.spans[:i], s) {
			fn(e.at(s), e.value(s))
		}
	}
}

// maxScratch bounds the memory kept between records, in bytes and in entries.
const maxScratch = 64 << 10

func (e *Entries) trim() {
	if cap(e.buf) > maxScratch {
		e.buf = nil
	}
	if cap(e.key) > maxScratch {
		e.key = nil
	}
	if cap(e.spans) > maxScratch/16 {
		e.spans = nil
	}
}
