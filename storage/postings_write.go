package storage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// PostingWriter changes lists of Postings in an open batch. It reads through one
// iterator that does not see what the writer itself writes: each list is changed
// once.
type PostingWriter struct {
	p        *Postings
	tx       *Tx
	it       *pebble.Iterator
	key      []byte // of the list, then of a block
	old, new block
	touched  []Doc // the oldest docs of the blocks rewritten, of the list in hand
	value    []byte
}

// NewPostingWriter opens a writer, to be closed.
func NewPostingWriter(w Writer, p *Postings) (*PostingWriter, error) {
	tx := w.Writer()
	it, _, err := tx.iterate(p.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return &PostingWriter{p: p, tx: tx, it: it}, nil
}

// Close ends the writer.
func (w *PostingWriter) Close() error { return w.it.Close() }

// Apply changes one list, whose name must not be the beginning of another's.
// changes are sorted by descending doc, each doc once, payloads of the postings'
// width; taking out what is not there does nothing. It tells whether the list had a
// doc before, and whether it has one now.
func (w *PostingWriter) Apply(list Key, changes []Posting) (had, has bool, err error) {
	w.key = append(append(w.key[:0], w.tx.fullKey(w.p.ID, nil)...), list...)
	w.touched = w.touched[:0]
	head := len(w.key)
	at := w.it.SeekGE(w.key) && w.within(head) // the newest block
	had = at
	for len(changes) > 0 {
		if at && changes[0].Doc < oldestOf(w.it.Key()) {
			at = w.it.SeekGE(blockKey(w.key[:head], changes[0].Doc)) && w.within(head)
		}
		if !at {
			// Older than every doc there is. Blocks before this one are rewritten, and the
			// oldest took along what is older (below): there was none.
			left, err := w.rewrite(head, false, changes)
			return had, has || left, err
		}
		oldest := oldestOf(w.it.Key())
		if err := w.load(); err != nil {
			return false, false, err
		}
		mine := slices.IndexFunc(changes, func(c Posting) bool { return c.Doc < oldest })
		if mine < 0 {
			mine = len(changes)
		} else if at = w.it.Next() && w.within(head); !at {
			mine = len(changes) // the oldest block takes what is older, too
		}
		left, err := w.rewrite(head, true, changes[:mine])
		if err != nil {
			return false, false, err
		}
		has = has || left
		changes = changes[mine:]
	}
	if !has && had {
		has = w.untouched(head)
	}
	if err := w.it.Error(); err != nil {
		return false, false, fmt.Errorf("%s: read a block: %w", w.p.Name, err)
	}
	return had, has, nil
}

// within tells whether the iterator is at a block of the list.
func (w *PostingWriter) within(head int) bool {
	key := w.it.Key()
	return len(key) == head+8 && bytes.Equal(key[:head], w.key[:head])
}

func (w *PostingWriter) load() error {
	value, err := w.it.ValueAndErr()
	if err != nil {
		return fmt.Errorf("%s: read a block: %w", w.p.Name, err)
	}
	return w.old.decode(w.it.Key(), value, w.p.Width)
}

// rewrite applies changes to the loaded block, or makes a new one, and tells
// whether anything is left of it.
func (w *PostingWriter) rewrite(head int, loaded bool, changes []Posting) (bool, error) {
	if !loaded {
		w.old.reset()
	}
	w.new.merge(&w.old, changes, w.p.Width)
	if loaded {
		oldest := w.old.docs[0]
		w.touched = append(w.touched, oldest)
		if len(w.new.docs) == 0 || w.new.docs[0] != oldest {
			w.key = blockKey(w.key[:head], oldest)
			if err := w.tx.batch.Delete(w.key, nil); err != nil {
				return false, fmt.Errorf("%s: delete a block: %w", w.p.Name, err)
			}
		}
	}
	// Full blocks at the old end: a list that grows at its new end never writes them
	// again.
	for from := 0; from < len(w.new.docs); from += blockPostings {
		to := min(from+blockPostings, len(w.new.docs))
		w.key = blockKey(w.key[:head], w.new.docs[from])
		w.value = w.new.encode(w.value[:0], from, to, w.p.Width)
		if err := w.tx.batch.Set(w.key, w.value, nil); err != nil {
			return false, fmt.Errorf("%s: write a block: %w", w.p.Name, err)
		}
	}
	return len(w.new.docs) > 0, nil
}

// untouched tells whether the list has a block that was not rewritten.
func (w *PostingWriter) untouched(head int) bool {
	for ok := w.it.SeekGE(w.key[:head]); ok && w.within(head); ok = w.it.Next() {
		if !slices.Contains(w.touched, oldestOf(w.it.Key())) {
			return true
		}
	}
	return false
}
