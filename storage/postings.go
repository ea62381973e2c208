package storage

import (
	"encoding/binary"
	"fmt"
)

// Doc is what postings call a listed record: the time and count of its id, the 60
// bits in front of the random ones. Within a workspace they are unique, and grow
// with the order of creation.
type Doc uint64

// DocOf gives the Doc of a UUIDv7 made by the workspace.
func DocOf(id ID) Doc {
	head := binary.BigEndian.Uint64(id[:])
	return Doc(head>>16<<12 | head&0xfff)
}

// PutOldest makes id the first that has this Doc.
func (d Doc) PutOldest(id *ID) {
	*id = ID{}
	binary.BigEndian.PutUint64(id[:], uint64(d)>>12<<16|0x7000|uint64(d)&0xfff)
}

// DocOfKey gives the Doc of a primary key made by Key.Newest.
func DocOfKey(pk []byte) Doc {
	head := ^binary.BigEndian.Uint64(pk)
	return Doc(head>>16<<12 | head&0xfff)
}

// DocKey is the first 8 bytes of the primary key, made by Key.Newest, that a
// doc's record has.
func DocKey(k Key, d Doc) Key {
	return binary.BigEndian.AppendUint64(k, ^(uint64(d)>>12<<16 | 0x7000 | uint64(d)&0xfff))
}

// Postings keep sorted sets of docs, one under each of many lists: an inverted
// index. Every doc of a list carries a payload of Width bytes.
//
// A list is stored in blocks of up to blockPostings docs. The newest are in its head,
// under the list's name: one look-up, which filters answer where there is none, finds
// all of most lists. The others are in sealed blocks, under the name and, inverted,
// the block's oldest doc, so that iterating forward meets the newest first. A list
// that grows at its new end writes its head again, and a sealed block once.
//
// A block's value is its kind, for a head its oldest doc, then the number of docs and
// the differences between them, oldest first, as varints, and the payloads in the
// same order.
type Postings struct {
	ID    TableID
	Name  string
	Width int
}

// blockPostings bounds a block. A change rewrites a block, a look-up decodes one.
const blockPostings = 128

// blockKind is the first byte of a block's value.
type blockKind byte

const (
	sealedBlock blockKind = iota
	wholeHead             // the head of a list without sealed blocks
	frontHead             // the head of a list that may have some
)

// Posting is a doc of a list. A nil payload takes the doc out.
type Posting struct {
	Doc     Doc
	Payload []byte
}

// block is a decoded block, oldest doc first.
type block struct {
	kind     blockKind
	docs     []Doc
	payloads []byte
}

func (b *block) reset() { b.docs, b.payloads = b.docs[:0], b.payloads[:0] }

// decode reads a block; key is the end of its key, which tells a sealed one's oldest
// doc.
func (b *block) decode(key, value []byte, width int) error {
	b.reset()
	bad := func() error { return fmt.Errorf("%w: block of postings of %d bytes", ErrFormat, len(value)) }
	if len(value) < 2 || len(key) < 8 && value[0] == byte(sealedBlock) || value[0] > byte(frontHead) {
		return bad()
	}
	b.kind = blockKind(value[0])
	rest := value[1:]
	var doc Doc
	if b.kind == sealedBlock {
		doc = oldestOf(key)
	} else {
		if len(rest) < 9 {
			return bad()
		}
		doc, rest = Doc(binary.BigEndian.Uint64(rest)), rest[8:]
	}
	count, n := binary.Uvarint(rest)
	if n <= 0 || count == 0 || count > blockPostings {
		return bad()
	}
	rest = rest[n:]
	b.docs = append(b.docs, doc)
	for range count - 1 {
		step, n := binary.Uvarint(rest)
		if n <= 0 || step == 0 {
			return bad()
		}
		rest = rest[n:]
		doc += Doc(step)
		b.docs = append(b.docs, doc)
	}
	if len(rest) != len(b.docs)*width {
		return bad()
	}
	b.payloads = append(b.payloads, rest...)
	return nil
}

// oldestOf reads the oldest doc from the end of a sealed block's key.
func oldestOf(key []byte) Doc { return Doc(^binary.BigEndian.Uint64(key[len(key)-8:])) }

// encode appends the value of a block with docs [from, to) of b.
func (b *block) encode(value []byte, kind blockKind, from, to, width int) []byte {
	value = append(value, byte(kind))
	if kind != sealedBlock {
		value = binary.BigEndian.AppendUint64(value, uint64(b.docs[from]))
	}
	value = binary.AppendUvarint(value, uint64(to-from))
	for i := from + 1; i < to; i++ {
		value = binary.AppendUvarint(value, uint64(b.docs[i]-b.docs[i-1]))
	}
	return append(value, b.payloads[from*width:to*width]...)
}

// blockKey appends the part of a sealed block's key behind its list.
func blockKey(k []byte, oldest Doc) []byte { return binary.BigEndian.AppendUint64(k, ^uint64(oldest)) }

// merge makes b the docs of old with changes, sorted by descending doc, applied.
func (b *block) merge(old *block, changes []Posting, width int) {
	b.reset()
	i, c := 0, len(changes)-1
	for i < len(old.docs) || c >= 0 {
		switch {
		case c < 0 || i < len(old.docs) && old.docs[i] < changes[c].Doc:
			b.docs = append(b.docs, old.docs[i])
			b.payloads = append(b.payloads, old.payloads[i*width:(i+1)*width]...)
			i++
			continue
		case i < len(old.docs) && old.docs[i] == changes[c].Doc:
			i++
		}
		if p := changes[c].Payload; p != nil {
			b.docs = append(b.docs, changes[c].Doc)
			b.payloads = append(b.payloads, p...)
		}
		c--
	}
}
