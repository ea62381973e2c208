package tracker

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"switchyard/storage"
)

// The search index of a workspace follows its issues. Whatever changes what the
// index should hold of an issue leaves a row in searchPending, in its own batch,
// that says what the index does hold; a timer merges such rows, some at a time. So
// the index and the rows together are exact at any moment: readers take the issues
// of the rows as they are, and the others from the index.

// The inverted lists.
var (
	// wordPostings has a list for each word of a title, description or identifier,
	// with all issues. A payload is the word's weight in the issue (how often it
	// occurs, in the title twice; 0 if only in the identifier) and the issue's length.
	wordPostings = storage.Postings{ID: searchWords, Name: "words", Width: 2}
	// titlePostings has a list for each term of a title, with the issues that may be
	// duplicates. A payload is how many terms the title has, and their signature.
	titlePostings = storage.Postings{ID: searchTitles, Name: "title terms", Width: 9}
)

// Subjects of the counters in searchTotals.
var (
	indexedIssues = storage.ID{15: 1}
	indexedLength = storage.ID{15: 2} // sum of the issues' lengths
	newestIndexed = storage.ID{15: 3} // newest Doc that was ever merged into titlePostings
	oldestPending = storage.ID{15: 4} // no pending row is of an older Doc: where to begin to read them
)

func wordList(word []byte) storage.Key { return storage.Key(nil).Str(string(word)) }

func termList(k storage.Key, hash uint64) storage.Key { return k.U64(hash) }

// titlePayload is a title's payload in titlePostings.
func titlePayload(b []byte, terms []term) []byte {
	return binary.BigEndian.AppendUint64(append(b, byte(len(terms))), signature(terms))
}

// mayRepeat tells whether an issue is one that a new one could be a duplicate of.
func (t *Issue) mayRepeat() bool { return !t.Status.Closed() && !t.IsDraft }

// textState says what wordPostings holds of an issue.
type textState uint8

const (
	textNone  textState = iota // nothing
	textSame                   // what the issue's text is
	textOther                  // what another text was
)

// indexed is what the index holds of an issue with a pending row.
type indexed struct {
	text   textState
	titled bool // titlePostings has it
	// Title is set when either holds it; the others with textOther.
	title, description, identifier string
}

// Layout of a pending row: flags (text state in the lower two bits, titled in the
// third), then, unless there is nothing to tell, each text behind its length.
func (x *indexed) encode() []byte {
	b := []byte{byte(x.text)}
	if x.titled {
		b[0] |= 4
	}
	if b[0] == byte(textNone) {
		return b
	}
	for _, s := range [...]string{x.title, x.description, x.identifier} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func parseIndexed(b []byte) (x indexed, err error) {
	if len(b) == 0 || b[0] > 7 || b[0]&3 > byte(textOther) {
		return x, fmt.Errorf("%w: pending row of %d bytes", storage.ErrFormat, len(b))
	}
	x.text, x.titled = textState(b[0]&3), b[0]&4 != 0
	if b[0] == byte(textNone) {
		return x, nil
	}
	b = b[1:]
	for _, s := range [...]*string{&x.title, &x.description, &x.identifier} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return x, fmt.Errorf("%w: broken text in a pending row", storage.ErrFormat)
		}
		*s = string(b[n : n+int(size)])
		b = b[n+int(size):]
	}
	return x, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (x *indexed) holdText(t *Issue) {
	x.text, x.title, x.description, x.identifier = textOther, t.Title, text(t.Description), text(t.Identifier)
}

// indexSoon is how long a change may wait for others before it is merged.
const indexSoon = 500 * time.Millisecond

// indexMany is how many changes don't wait: a creation goes through all of them.
const indexMany = 1024

// indexNew notes an issue that was created.
func (tx *Tx) indexNew(t *Issue) error {
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	if err := tx.setPending(t.id(), &indexed{}); err != nil {
		return err
	}
	tx.recent().put(t, tx.terms(t.Title), true)
	return nil
}

// terms gives the terms of a title; a creation asks for them twice.
func (tx *Tx) terms(title string) []term {
	if l := tx.ledger; l.title != title || l.terms == nil {
		l.title, l.terms = title, l.stems.terms(title)
	}
	return tx.ledger.terms
}

// indexChange notes that an issue changed from old to t.
func (tx *Tx) indexChange(old, t *Issue) error {
	retold := old.Title != t.Title || text(old.Description) != text(t.Description) || text(old.Identifier) != text(t.Identifier)
	if !retold && old.mayRepeat() == t.mayRepeat() {
		tx.recent().refresh(t)
		return nil
	}
	x, err := tx.pending(t.id())
	if err != nil {
		return err
	}
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	switch {
	case x == nil:
		x = &indexed{text: textSame, titled: old.mayRepeat(), title: old.Title}
		if retold {
			x.holdText(old)
		}
		err = tx.setPending(t.id(), x)
	case retold && x.text == textSame:
		x.holdText(old) // nothing of it has changed since it was indexed
		err = tx.setPending(t.id(), x)
	}
	if err != nil {
		return err
	}
	tx.recent().put(t, titleTerms(t.Title), x.text == textNone && !x.titled)
	return nil
}

// indexGone notes that an issue was deleted.
func (tx *Tx) indexGone(t *Issue) error {
	x, err := tx.pending(t.id())
	if err != nil {
		return err
	}
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	switch {
	case x == nil:
		x = &indexed{titled: t.mayRepeat()}
		x.holdText(t)
	case x.text == textSame:
		x.holdText(t)
	}
	if err := tx.setPending(t.id(), x); err != nil {
		return err
	}
	tx.recent().gone(t.id(), x.text == textNone && !x.titled)
	return nil
}

// pending reads what the index holds of an issue; nil when that is what it is.
func (v *View) pending(id storage.ID) (*indexed, error) {
	value, err := v.Value(searchPending, id[:], nil)
	if err != nil || value == nil {
		return nil, err
	}
	x, err := parseIndexed(value)
	return &x, err
}

// eachPending goes through the pending rows, oldest issue first. Rows of issues
// that were merged leave tombstones; it begins behind most of them.
func (v *View) eachPending(oldest uint64, fn func(id storage.ID, value []byte) (bool, error)) error {
	var from storage.ID
	storage.Doc(oldest).PutOldest(&from)
	return v.Rows(searchPending, nil, from[:], func(fields, value []byte) (bool, error) {
		if len(fields) != len(storage.ID{}) {
			return false, fmt.Errorf("%w: pending row's key of %d bytes", storage.ErrFormat, len(fields))
		}
		return fn(storage.ID(fields), value)
	})
}

func (tx *Tx) setPending(id storage.ID, x *indexed) error {
	oldest, err := tx.Counter(searchTotals, oldestPending)
	if err != nil {
		return err
	}
	if doc := uint64(storage.DocOf(id)); doc < oldest {
		if err := tx.SetCounter(searchTotals, oldestPending, doc); err != nil {
			return err
		}
	}
	if err := tx.Writer().SetValue(searchPending, id[:], x.encode()); err != nil {
		return fmt.Errorf("note a change for the index: %w", err)
	}
	if err := tx.arm(mergeSearch, tx.now.Add(indexSoon)); err != nil {
		return err
	}
	if len(tx.recent().all) == keptTitles+indexMany {
		return tx.SetTimer(timerMergeSearch, "", tx.now)
	}
	return nil
}

// bag is the words of an issue with their weights, and its length.
type bag struct {
	weights map[string]uint8
	length  int
}

// bagOf counts the words of a text.
func bagOf(title, description, identifier string) bag {
	b := bag{weights: make(map[string]uint8, 32)}
	add := func(weight uint8) func([]byte) {
		return func(word []byte) {
			b.length += int(weight)
			b.weights[string(word)] = min(b.weights[string(word)], math.MaxUint8-weight) + weight
		}
	}
	eachWord(title, add(2))
	eachWord(description, add(1))
	eachWord(identifier, add(0))
	return b
}

// lengthByte puts a length into a byte, to an eighth of a doubling.
func lengthByte(n int) byte {
	return byte(min(math.MaxUint8, math.Round(8*math.Log2(float64(n)+1))))
}

// lengthOf reads lengthByte back.
func lengthOf(b byte) float64 { return math.Exp2(float64(b)/8) - 1 }
