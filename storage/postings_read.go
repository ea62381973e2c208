package storage

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// Docs is a stream of docs, newest first.
type Docs interface {
	// Next gives the newest doc that is not newer than most; false when there is none.
	// most never grows from call to call.
	Next(most Doc) (Doc, bool, error)
	Close() error
}

// PostingReader reads one list of Postings after another, or streams one; newest
// first.
type PostingReader struct {
	p     *Postings
	v     *View
	it    *pebble.Iterator // over sealed blocks; opened when first needed
	key   []byte
	skip  int // length of the prefix in front of a list
	head  int // length of the key up to the end of the list
	block block
	i     int // place in the block
	at    bool
}

// Read makes a reader of r's workspace, to be closed. r must not be used by others
// meanwhile.
func (p *Postings) Read(r Reader) *PostingReader {
	v := r.Reader()
	key := append(make([]byte, 0, 64), v.fullKey(p.ID, nil)...)
	return &PostingReader{p: p, v: v, key: key, skip: len(key)}
}

// Close ends the reader.
func (r *PostingReader) Close() error {
	if r.it == nil {
		return nil
	}
	return r.it.Close()
}

// List begins a list from its newest doc not newer than most.
func (r *PostingReader) List(list Key, most Doc) error {
	r.key = append(r.key[:r.skip], list...)
	r.head, r.at = len(r.key), false
	found, err := r.loadHead()
	if err != nil || !found {
		return err
	}
	if r.block.docs[0] > most {
		return r.jump(most)
	}
	r.begin(most)
	return nil
}

// loadHead reads the head of the list.
func (r *PostingReader) loadHead() (bool, error) {
	value, closer, err := r.v.get(r.p.ID, r.key[r.skip:r.head])
	if err == nil && closer != nil {
		err = r.block.decode(nil, value, r.p.Width)
		if e := closer.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s: read a list: %w", r.p.Name, err)
	}
	return closer != nil, nil
}

// begin starts in a block that has a doc not newer than most.
func (r *PostingReader) begin(most Doc) {
	r.at, r.i = true, len(r.block.docs)-1
	r.forward(most)
}

func (r *PostingReader) open() error {
	if r.it != nil {
		return nil
	}
	it, _, err := r.v.iterate(r.p.ID, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", r.p.Name, err)
	}
	r.it = it
	return nil
}

// jump goes to the sealed block with the newest doc not newer than most.
func (r *PostingReader) jump(most Doc) error {
	r.at = false
	if r.block.kind == wholeHead {
		return nil
	}
	if err := r.open(); err != nil {
		return err
	}
	r.key = blockKey(r.key[:r.head], most)
	return r.settle(r.it.SeekGE(r.key), most)
}

// settle decodes the block that the iterator came to.
func (r *PostingReader) settle(ok bool, most Doc) error {
	r.at = ok && r.within()
	if !r.at {
		if err := r.it.Error(); err != nil {
			return fmt.Errorf("%s: read a block: %w", r.p.Name, err)
		}
		return nil
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return fmt.Errorf("%s: read a block: %w", r.p.Name, err)
	}
	if err := r.block.decode(r.it.Key(), value, r.p.Width); err != nil {
		return fmt.Errorf("%s: %w", r.p.Name, err)
	}
	r.begin(most)
	return nil
}

// within tells whether the iterator is at a sealed block of the list.
func (r *PostingReader) within() bool {
	key := r.it.Key()
	return len(key) == r.head+8 && bytes.Equal(key[r.skip:r.head], r.key[r.skip:r.head])
}

// forward moves within the block to the newest doc not newer than most; the
// block's oldest is not.
func (r *PostingReader) forward(most Doc) {
	if r.block.docs[r.i] > most {
		r.i = sort.Search(r.i, func(i int) bool { return r.block.docs[i] > most }) - 1
	}
}

// Valid tells whether the reader is at a posting.
func (r *PostingReader) Valid() bool { return r.at }

// Doc that the reader is at.
func (r *PostingReader) Doc() Doc { return r.block.docs[r.i] }

// Payload of the posting, valid until the reader moves.
func (r *PostingReader) Payload() []byte {
	return r.block.payloads[r.i*r.p.Width : (r.i+1)*r.p.Width]
}

// Step moves to the next older doc of the list.
func (r *PostingReader) Step() error {
	switch {
	case r.i > 0:
		r.i--
		return nil
	case r.block.kind != sealedBlock:
		return r.jump(^Doc(0))
	}
	return r.settle(r.it.Next(), ^Doc(0))
}

// Seek moves to the newest doc of the list that is not newer than most.
func (r *PostingReader) Seek(most Doc) error {
	switch {
	case !r.at || r.Doc() <= most:
		return nil
	case r.block.docs[0] <= most:
		r.forward(most)
		return nil
	case r.block.kind != sealedBlock:
		return r.jump(most)
	}
	// The next block is as likely as not the one.
	if r.it.Next() && r.within() && oldestOf(r.it.Key()) <= most {
		return r.settle(true, most)
	}
	return r.jump(most)
}

// Next implements Docs for the list begun.
func (r *PostingReader) Next(most Doc) (Doc, bool, error) {
	if err := r.Seek(most); err != nil || !r.at {
		return 0, false, err
	}
	return r.Doc(), true, nil
}

// Blocks counts the blocks of a list, up to most.
func (r *PostingReader) Blocks(list Key, most int) (n int, err error) {
	r.key = append(r.key[:r.skip], list...)
	r.head, r.at = len(r.key), false
	found, err := r.loadHead()
	if err != nil || !found {
		return 0, err
	}
	if r.block.kind == wholeHead {
		return 1, nil
	}
	if err := r.open(); err != nil {
		return 0, err
	}
	r.key = blockKey(r.key, ^Doc(0))
	n = 1
	for ok := r.it.SeekGE(r.key); ok && n < most && r.within(); ok = r.it.Next() {
		n++
	}
	if err := r.it.Error(); err != nil {
		return 0, fmt.Errorf("%s: count blocks: %w", r.p.Name, err)
	}
	return n, nil
}

// Lists calls fn for each list whose name begins with prefix, in order, with its
// number of blocks, until fn returns false or blocks blocks were counted; more tells
// that there may be others.
func (r *PostingReader) Lists(prefix []byte, blocks int, fn func(list []byte, blocks int) bool) (more bool, err error) {
	if err := r.open(); err != nil {
		return false, err
	}
	r.key = append(r.key[:r.skip], prefix...)
	r.at = false
	var name []byte
	n := 0
	for ok := r.it.SeekGE(r.key); ok && bytes.HasPrefix(r.it.Key(), r.key); ok = r.it.Next() {
		value, err := r.it.ValueAndErr()
		if err != nil {
			return false, fmt.Errorf("%s: walk lists: %w", r.p.Name, err)
		}
		list, err := listOf(r.it.Key()[r.skip:], value)
		if err != nil {
			return false, fmt.Errorf("%s: walk lists: %w", r.p.Name, err)
		}
		if n > 0 && !bytes.Equal(list, name) {
			if !fn(name, n) {
				return true, nil
			}
			n = 0
		}
		if blocks == 0 {
			return true, nil
		}
		blocks--
		name = append(name[:0], list...)
		n++
	}
	if err := r.it.Error(); err != nil {
		return false, fmt.Errorf("%s: walk lists: %w", r.p.Name, err)
	}
	if n > 0 && !fn(name, n) {
		return true, nil
	}
	return false, nil
}

// listOf gives the list that a block belongs to.
func listOf(fields, value []byte) ([]byte, error) {
	switch {
	case len(value) == 0 || value[0] == byte(sealedBlock) && len(fields) < 8:
		return nil, fmt.Errorf("%w: block of postings of %d bytes", ErrFormat, len(value))
	case value[0] == byte(sealedBlock):
		return fields[:len(fields)-8], nil
	}
	return fields, nil
}

// EachPosting goes through the postings of one stored block, given by its fields and
// value, and gives the list it belongs to. Whoever verifies a store needs it.
func (p *Postings) EachPosting(fields, value []byte, fn func(list []byte, doc Doc, payload []byte)) ([]byte, error) {
	var b block
	if err := b.decode(fields, value, p.Width); err != nil {
		return nil, err
	}
	list, err := listOf(fields, value)
	if err != nil {
		return nil, err
	}
	for i, doc := range b.docs {
		fn(list, doc, b.payloads[i*p.Width:(i+1)*p.Width])
	}
	return list, nil
}
