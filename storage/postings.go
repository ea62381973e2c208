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

// docOfKey gives the Doc of a primary key made by Key.Newest.
func docOfKey(pk []byte) Doc {
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
// A list is stored in blocks of up to blockPostings docs. A block's key is the list
// and, inverted, the block's oldest doc, so that iterating forward meets the newest
// block first, and a list that grows at its new end keeps its keys. Its value is the
// differences between the docs, oldest first, as varints behind their number, and
// the payloads in the same order.
type Postings struct {
	ID    TableID
	Name  string
	Width int
}

// blockPostings bounds a block. A change rewrites a block, a look-up decodes one.
const blockPostings = 128

// Posting is a doc of a list. A nil payload takes the doc out.
type Posting struct {
	Doc     Doc
	Payload []byte
}

// block is a decoded block, oldest doc first.
type block struct {
	docs     []Doc
	payloads []byte
}

func (b *block) reset() { b.docs, b.payloads = b.docs[:0], b.payloads[:0] }

// decode reads a block whose key ends in its inverted oldest doc.
func (b *block) decode(key, value []byte, width int) error {
	b.reset()
	count, n := binary.Uvarint(value)
	if n <= 0 || count == 0 || count > blockPostings || len(key) < 8 {
		return fmt.Errorf("%w: block of postings of %d bytes", ErrFormat, len(value))
	}
	value = value[n:]
	doc := oldestOf(key)
	b.docs = append(b.docs, doc)
	for range count - 1 {
		step, n := binary.Uvarint(value)
		if n <= 0 || step == 0 {
			return fmt.Errorf("%w: broken step in a block of postings", ErrFormat)
		}
		value = value[n:]
		doc += Doc(step)
		b.docs = append(b.docs, doc)
	}
	if len(value) != len(b.docs)*width {
		return fmt.Errorf("%w: block of %d postings has %d bytes of payloads", ErrFormat, count, len(value))
	}
	b.payloads = append(b.payloads, value...)
	return nil
}

// oldestOf reads the oldest doc from the end of a block's key.
func oldestOf(key []byte) Doc { return Doc(^binary.BigEndian.Uint64(key[len(key)-8:])) }

// appendBlock encodes docs [from, to) of the block.
func (b *block) encode(value []byte, from, to, width int) []byte {
	value = binary.AppendUvarint(value, uint64(to-from))
	for i := from + 1; i < to; i++ {
		value = binary.AppendUvarint(value, uint64(b.docs[i]-b.docs[i-1]))
	}
	return append(value, b.payloads[from*width:to*width]...)
}

// blockKey appends the part of a block's key behind its list.
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
