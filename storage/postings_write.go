package storage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// PostingWriter changes lists of Postings in an open batch, one after another.
type PostingWriter struct {
	p     *Postings
	tx    *Tx
	it    *pebble.Iterator // over sealed blocks; opened when first needed
	key   []byte           // of the list, then of a block
	head  int              // length of the key up to the end of the list
	old   block
	new   block
	value []byte
	// sealed are the blocks of the list in hand that were rewritten, by their oldest
	// doc: the iterator doesn't see what was written since it was opened.
	sealed map[Doc]*block
}

// NewPostingWriter opens a writer, to be closed. Each list may be changed once.
func NewPostingWriter(w Writer, p *Postings) *PostingWriter {
	return &PostingWriter{p: p, tx: w.Writer()}
}

// Close ends the writer.
func (w *PostingWriter) Close() error {
	if w.it == nil {
		return nil
	}
	return w.it.Close()
}

// Apply changes one list, whose name must not be the beginning of another's.
// changes are sorted by descending doc, each doc once, payloads of the postings'
// width; taking out what is not there does nothing. It tells whether the list had a
// doc before, and whether it has one now.
func (w *PostingWriter) Apply(list Key, changes []Posting) (had, has bool, err error) {
	w.key = append(append(w.key[:0], w.tx.fullKey(w.p.ID, nil)...), list...)
	w.head = len(w.key)
	clear(w.sealed)
	if had, err = w.loadHead(list); err != nil {
		return false, false, fmt.Errorf("%s: %w", w.p.Name, err)
	}
	kind := wholeHead
	mine := len(changes)
	if had && w.old.kind == frontHead {
		kind = frontHead
		oldest := w.old.docs[0]
		if mine = slices.IndexFunc(changes, func(c Posting) bool { return c.Doc < oldest }); mine < 0 {
			mine = len(changes)
		}
	}
	w.new.merge(&w.old, changes[:mine], w.p.Width)
	newest := w.new
	w.new = block{}
	if mine < len(changes) {
		if err := w.applySealed(changes[mine:]); err != nil {
			return false, false, fmt.Errorf("%s: %w", w.p.Name, err)
		}
	}
	if len(newest.docs) == 0 && kind == frontHead {
		if err := w.promote(&newest); err != nil {
			return false, false, fmt.Errorf("%s: %w", w.p.Name, err)
		}
	}
	has = len(newest.docs) > 0
	switch {
	case has:
		err = w.storeHead(&newest, kind)
	case had:
		err = w.tx.batch.Delete(w.key[:w.head], nil)
	}
	w.new = newest // its memory
	if err != nil {
		return false, false, fmt.Errorf("%s: write a block: %w", w.p.Name, err)
	}
	return had, has, nil
}

// loadHead reads the head of a list; false when the list is empty.
func (w *PostingWriter) loadHead(list Key) (bool, error) {
	w.old.reset()
	value, closer, err := w.tx.get(w.p.ID, list)
	if err != nil || closer == nil {
		return false, err
	}
	if err := w.old.decode(nil, value, w.p.Width); err != nil {
		_ = closer.Close()
		return false, err
	}
	return true, closer.Close()
}

// storeHead writes the newest docs of a list. More than a block holds are sealed,
// the oldest first and in full blocks, which need not be written again.
func (w *PostingWriter) storeHead(b *block, kind blockKind) error {
	from := 0
	for ; len(b.docs)-from > blockPostings; from += blockPostings {
		kind = frontHead
		if err := w.set(blockKey(w.key[:w.head], b.docs[from]), b, sealedBlock, from, from+blockPostings); err != nil {
			return err
		}
	}
	return w.set(w.key[:w.head], b, kind, from, len(b.docs))
}

func (w *PostingWriter) set(key []byte, b *block, kind blockKind, from, to int) error {
	w.key = append(w.key[:0], key...)
	w.value = b.encode(w.value[:0], kind, from, to, w.p.Width)
	return w.tx.batch.Set(w.key, w.value, nil)
}

// applySealed changes sealed blocks.
func (w *PostingWriter) applySealed(changes []Posting) error {
	if err := w.open(); err != nil {
		return err
	}
	for len(changes) > 0 {
		if !w.it.SeekGE(blockKey(w.key[:w.head], changes[0].Doc)) || !w.within() {
			// Older than every sealed block there was; what of those is rewritten took along
			// what is older (below), so there was none.
			w.old.reset()
			return w.reseal(changes, false)
		}
		oldest := oldestOf(w.it.Key())
		if err := w.load(); err != nil {
			return err
		}
		mine := slices.IndexFunc(changes, func(c Posting) bool { return c.Doc < oldest })
		if mine < 0 || !w.it.Next() || !w.within() {
			mine = len(changes) // the oldest block takes what is older, too
		}
		if err := w.reseal(changes[:mine], true); err != nil {
			return err
		}
		changes = changes[mine:]
	}
	return w.it.Error()
}

func (w *PostingWriter) open() error {
	if w.it != nil {
		return nil
	}
	it, _, err := w.tx.iterate(w.p.ID, nil)
	if err != nil {
		return err
	}
	w.it = it
	return nil
}

// within tells whether the iterator is at a sealed block of the list.
func (w *PostingWriter) within() bool {
	key := w.it.Key()
	return len(key) == w.head+8 && bytes.Equal(key[:w.head], w.key[:w.head])
}

func (w *PostingWriter) load() error {
	value, err := w.it.ValueAndErr()
	if err != nil {
		return fmt.Errorf("read a block: %w", err)
	}
	return w.old.decode(w.it.Key(), value, w.p.Width)
}

// reseal applies changes to the loaded block, or makes a new one.
func (w *PostingWriter) reseal(changes []Posting, loaded bool) error {
	b := &block{}
	b.merge(&w.old, changes, w.p.Width)
	if w.sealed == nil {
		w.sealed = map[Doc]*block{}
	}
	if loaded {
		w.sealed[w.old.docs[0]] = nil
		if len(b.docs) == 0 || b.docs[0] != w.old.docs[0] {
			if err := w.tx.batch.Delete(blockKey(w.key[:w.head], w.old.docs[0]), nil); err != nil {
				return err
			}
		}
	}
	for from := 0; from < len(b.docs); from += blockPostings {
		to := min(from+blockPostings, len(b.docs))
		if err := w.set(blockKey(w.key[:w.head], b.docs[from]), b, sealedBlock, from, to); err != nil {
			return err
		}
		w.sealed[b.docs[from]] = &block{docs: b.docs[from:to], payloads: b.payloads[from*w.p.Width : to*w.p.Width]}
	}
	return nil
}

// promote makes the newest sealed block the head of a list that lost its head.
func (w *PostingWriter) promote(head *block) error {
	if err := w.open(); err != nil {
		return err
	}
	newest, found := Doc(0), false
	for doc, b := range w.sealed {
		if b != nil && (!found || doc > newest) {
			newest, found = doc, true
		}
	}
	for ok := w.it.SeekGE(blockKey(w.key[:w.head], ^Doc(0))); ok && w.within(); ok = w.it.Next() {
		doc := oldestOf(w.it.Key())
		if _, rewritten := w.sealed[doc]; rewritten {
			continue
		}
		if !found || doc > newest {
			if err := w.load(); err != nil {
				return err
			}
			head.docs, head.payloads = slices.Clone(w.old.docs), slices.Clone(w.old.payloads)
			return w.tx.batch.Delete(blockKey(w.key[:w.head], doc), nil)
		}
		break
	}
	if err := w.it.Error(); err != nil || !found {
		return err
	}
	head.docs, head.payloads = w.sealed[newest].docs, w.sealed[newest].payloads
	return w.tx.batch.Delete(blockKey(w.key[:w.head], newest), nil)
}
