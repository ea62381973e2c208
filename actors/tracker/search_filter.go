package tracker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Bounds on the work for a word of a search in a segment. Several words begin with it; where their
// postings are more than searchRead they are streamed side by side, if there are no more
// than searchLists words, or else read whole, up to searchWhole. Beyond that they occur so
// often that looking at the issues themselves is cheaper.
const (
	searchRead  = 1024
	searchLists = 8
	searchWhole = 200_000
	// maxSearched bounds the issues whose text a page looks through, and maxSearchedText the bytes of
	// these texts. A text that shows at a glance that it lacks a word counts with a part of its bytes.
	maxSearched     = 20_000
	maxSearchedText = 64 << 20
	glance          = 8
	// glanceWords is how many words such a glance looks for.
	glanceWords = 8
)

// textSearch is the search filter of a list: every word of the query must begin a
// word of title, description or identifier (Decision 17). Issues that the index
// lacks are looked at themselves, so that a search sees every write before it.
type textSearch struct {
	v       *View
	words   [][]byte      // as prefixWords returns them
	wide    [][]byte      // words that not every segment read so far has a stream for, sorted
	changed []storage.Doc // issues that the index holds wrongly, newest first
	through storage.Doc   // newer issues are not in the index
	docs    storage.Docs  // nil: any issue
	folded  []byte        // scratch of mayHave
	left    int           // issues whose text the page may still look through, see maxSearched
	looked  int           // bytes of text looked through, see maxSearchedText
	tail    int           // issues of these that no segment has
}

// searchStreams closes what the streams of a search read through.
type searchStreams struct {
	storage.AnyDocs
	reader   *storage.SegmentReader
	replaced []*replaced
}

// Close implements storage.Docs.
func (s *searchStreams) Close() error {
	errs := []error{s.AnyDocs.Close()}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	for _, r := range s.replaced {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// search prepares a search; nil when the query has no word, and so no condition. Its docs
// are closed by the list that they are given to.
func (v *View) search(query string) (s *textSearch, err error) {
	s = &textSearch{v: v, words: prefixWords(query), left: maxSearched}
	if len(s.words) == 0 {
		return nil, nil
	}
	m, err := v.manifest()
	if err != nil {
		return nil, err
	}
	s.through = m.Through
	err = v.eachChanged(func(id storage.ID, _ uint64) (bool, error) {
		s.changed = append(s.changed, storage.DocOf(id))
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the index's tail: %w", err)
	}
	slices.Reverse(s.changed)
	if len(m.Segments) == 0 {
		return s, nil
	}
	streams := &searchStreams{}
	s.docs = streams
	defer func() {
		if err != nil {
			err = errors.Join(err, streams.Close())
		}
	}()
	if streams.reader, err = searchIndex.Reader(v); err != nil {
		return nil, err
	}
	changed := storage.DocList(s.changed)
	streams.AnyDocs = append(streams.AnyDocs, &storage.DocsExcept{From: newSearchedSegments(s, streams, &m), Not: s.changed}, &changed)
	tail, err := v.NewestDocs(issueTable, m.Through)
	if err != nil {
		return nil, err
	}
	streams.AnyDocs = append(streams.AnyDocs, tail)
	return s, nil
}

// prefixWords returns the words of a query, sorted. Words that another one begins with are left out: an issue
// that has the longer word has the shorter one. So at most one of the words begins a given one.
func prefixWords(query string) (words [][]byte) {
	eachWord(query, func(word []byte) { words = append(words, bytes.Clone(word)) })
	slices.SortFunc(words, bytes.Compare)
	kept := words[:0]
	for i, word := range words { // the words that begin with it come next
		if i+1 == len(words) || !bytes.HasPrefix(words[i+1], word) {
			kept = append(kept, word)
		}
	}
	return kept
}

// watchedOrds counts the steps of streams that are moved together until they agree.
type watchedOrds struct {
	storage.Ords
	v    *View
	rows int // that a step counts as
}

// Next implements storage.Ords.
func (o watchedOrds) Next(from uint32) (uint32, bool, error) {
	if err := o.v.Work(o.rows); err != nil {
		return 0, false, err
	}
	return o.Ords.Next(from)
}

// searchedSegments streams what segments have of a search. It reads a segment only when one of its docs may be the next:
// a page of the newest issues with a word that is in many needs few segments.
type searchedSegments struct {
	s       *textSearch
	streams *searchStreams
	m       *storage.Manifest
	docs    []storage.Docs // of the segments, as m has them; nil for those that were not read
}

// newSearchedSegments sorts the segments of m, the one with the newest doc first.
func newSearchedSegments(s *textSearch, streams *searchStreams, m *storage.Manifest) *searchedSegments {
	slices.SortStableFunc(m.Segments, func(a, b storage.Segment) int { return compare(uint64(b.Newest), uint64(a.Newest)) })
	return &searchedSegments{s: s, streams: streams, m: m, docs: make([]storage.Docs, len(m.Segments))}
}

// Next implements storage.Docs.
func (d *searchedSegments) Next(most storage.Doc) (newest storage.Doc, found bool, err error) {
	for i := range d.docs {
		of := &d.m.Segments[i]
		if found && of.Newest <= newest {
			break // the others have no newer one either
		}
		if d.docs[i] == nil {
			if d.docs[i], err = d.s.segment(d.streams, d.m, of); err != nil {
				return 0, false, err
			}
		}
		doc, is, err := d.docs[i].Next(most)
		if err != nil {
			return 0, false, err
		}
		if is && (!found || doc > newest) {
			newest, found = doc, true
		}
	}
	return newest, found, nil
}

// Close implements storage.Docs.
func (d *searchedSegments) Close() error {
	var errs []error
	for _, docs := range d.docs {
		if docs != nil {
			errs = append(errs, docs.Close())
		}
	}
	return errors.Join(errs...)
}

// segment streams the docs of a segment that have all words, as far as there are streams.
func (s *textSearch) segment(streams *searchStreams, m *storage.Manifest, of *storage.Segment) (storage.Docs, error) {
	var all storage.AllOrds
	for _, word := range s.words {
		ords, err := wordStream(streams.reader, of, word)
		if err != nil {
			return nil, err
		}
		if list, is := ords.(*storage.OrdList); is && len(*list) == 0 {
			return new(storage.DocList), nil // no issue has the word
		}
		if ords != nil {
			all = append(all, ords)
		} else if i, is := slices.BinarySearchFunc(s.wide, word, bytes.Compare); !is {
			s.wide = slices.Insert(s.wide, i, word)
		}
	}
	if n := len(all); n > 1 {
		all[0] = watchedOrds{all[0], s.v, 1 + n/4}
	}
	var skip func(storage.Doc) (bool, error)
	if m.Replaced > 0 {
		r, err := s.v.replaced()
		if err != nil {
			return nil, err
		}
		streams.replaced = append(streams.replaced, r)
		skip = func(doc storage.Doc) (bool, error) {
			age, err := r.find(doc)
			return of.Age < age, err
		}
	}
	return streams.reader.Docs(of, all, skip), nil
}

// wordStream streams the ordinals of a segment's issues that have a word which begins
// with the given one; nil when there are too many such words.
func wordStream(r *storage.SegmentReader, of *storage.Segment, word []byte) (storage.Ords, error) {
	var terms []storage.Key // the first ones
	var ords []uint32
	count, total, whole := 0, 0, true
	err := r.Terms(of.Number, wordTerms, word,
		func(n int) bool {
			total += n
			whole = whole && total <= searchRead
			return whole
		},
		func(term []byte, first bool, _ int, some []uint32) bool {
			if first {
				if count++; count <= searchLists {
					terms = append(terms, bytes.Clone(term))
				}
			}
			ords = append(ords, some...)
			return total <= searchWhole || count <= searchLists
		})
	switch {
	case err != nil:
		return nil, err
	case total > searchWhole && count > searchLists:
		return nil, nil
	case count > searchLists && !whole:
		ords = ords[:0]
		err = r.Terms(of.Number, wordTerms, word, func(int) bool { return true }, func(_ []byte, _ bool, _ int, some []uint32) bool {
			ords = append(ords, some...)
			return true
		})
		if err != nil {
			return nil, err
		}
	case !whole:
		var any storage.AnyOrds
		for _, term := range terms {
			l, err := r.List(of.Number, wordTerms, term)
			if err == nil {
				err = l.Begin()
			}
			if err != nil {
				return nil, err
			}
			any = append(any, l)
		}
		if len(any) == 1 {
			return any[0], nil
		}
		return any, nil
	}
	if count > 1 && len(ords) > int(of.Docs)/sortedOrds {
		return storage.NewOrdSet(ords, of.Docs), nil // for so many it takes less time than to sort them
	}
	slices.Sort(ords)
	list := storage.OrdList(slices.Compact(ords))
	return &list, nil
}

// sortedOrds is how many docs a segment has for each ordinal of the longest list that is sorted.
const sortedOrds = 256

// matches looks at the text of an issue where no stream vouches for it.
func (s *textSearch) matches(rec storage.Record) (bool, error) {
	id, err := storedID(rec)
	if err != nil {
		return false, err
	}
	words, doc := s.wide, storage.DocOf(id)
	if doc > s.through || s.docs == nil {
		words = s.words
		if s.tail++; s.tail == indexMany {
			s.v.tails.await(s.v.Workspace())
		}
	} else if _, lacks := slices.BinarySearchFunc(s.changed, doc, func(a, b storage.Doc) int { return compare(uint64(b), uint64(a)) }); lacks {
		words = s.words
	}
	if len(words) == 0 {
		return true, nil
	}
	s.left--
	body := rec.JSON()
	if !s.mayHave(body, words) {
		s.looked += len(body) / glance
		return false, s.v.Work(len(body) / (glance * textPerRow))
	}
	s.looked += len(body)
	var t searchText
	if err := json.Unmarshal(body, &t); err != nil {
		return false, fmt.Errorf("read an issue: %w", err)
	}
	found := prefixesMet{words: words, met: make([]bool, len(words)), left: len(words)}
	for _, text := range [...]string{t.Title, text(t.Identifier), text(t.Description)} {
		if err := s.v.eachPiece(text, found.look); err != nil {
			return false, err
		}
	}
	return found.left == 0, nil
}

// mayLook reports whether the page may look at the text of one more issue.
func (s *textSearch) mayLook() bool { return s.left > 0 && s.looked < maxSearchedText }

// mayHave looks for words in the JSON of an issue. It excludes most issues that don't have
// them at a fraction of the cost of decoding. Words are letters and digits, which JSON
// does not escape. Letters other than those of ASCII have many forms: if the issue has
// some the answer is yes.
func (s *textSearch) mayHave(body []byte, words [][]byte) bool {
	var ascii bool
	if s.folded, ascii = appendLower(s.folded[:0], body); !ascii {
		return true
	}
	for _, word := range words[:min(len(words), glanceWords)] {
		if !bytes.Contains(s.folded, word) {
			return false
		}
	}
	return true
}

// appendLower appends text with its letters in lower case, eight bytes at a time. It returns false where some of
// the text is not ASCII; then not all letters are in lower case.
func appendLower(b, text []byte) ([]byte, bool) {
	const all = 0x0101010101010101 // times a byte: eight of it
	from := len(b)
	b = append(b, text...)
	rest := b[from:]
	for ; len(rest) >= 8; rest = rest[8:] {
		x := binary.LittleEndian.Uint64(rest)
		if x&(0x80*all) != 0 {
			return b, false
		}
		// The upper bit of each byte of upper is that of a capital letter: from 'A' on, and not behind 'Z'.
		upper := (x + (0x80-'A')*all) &^ (x + (0x80-'Z'-1)*all) & (0x80 * all)
		binary.LittleEndian.PutUint64(rest, x|upper>>2) // 0x20 makes a letter a small one
	}
	for i, c := range rest {
		if c >= utf8.RuneSelf {
			return b, false
		}
		if 'A' <= c && c <= 'Z' {
			rest[i] = c + 'a' - 'A'
		}
	}
	return b, true
}

// prefixesMet notes which words of a query begin a word of some texts.
type prefixesMet struct {
	words [][]byte // as prefixWords returns them
	met   []bool
	left  int // words that are not met
}

// fewWords is how many words are compared with a word one by one.
const fewWords = 4

// look looks at the words of a text, and reports whether some words are still to be met.
func (p *prefixesMet) look(text string) (more bool) {
	few := len(p.words) <= fewWords
	eachWord(text, func(word []byte) {
		if !few {
			p.find(word)
			return
		}
		for i, w := range p.words {
			if !p.met[i] && bytes.HasPrefix(word, w) {
				p.meet(i)
			}
		}
	})
	return p.left > 0
}

// find looks for the word of the query that begins a word. It is the last one that is not behind that.
func (p *prefixesMet) find(word []byte) {
	from, to := 0, len(p.words)
	for from < to {
		if at := (from + to) / 2; bytes.Compare(p.words[at], word) <= 0 {
			from = at + 1
		} else {
			to = at
		}
	}
	if from > 0 && !p.met[from-1] && bytes.HasPrefix(word, p.words[from-1]) {
		p.meet(from - 1)
	}
}

func (p *prefixesMet) meet(i int) {
	p.met[i] = true
	p.left--
}
