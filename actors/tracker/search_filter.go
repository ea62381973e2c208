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
	// maxSearched bounds the issues whose text a page looks through.
	maxSearched = 20_000
)

// textSearch is the search filter of a list: every word of the query must begin a
// word of title, description or identifier (Decision 17). Issues that the index
// lacks are looked at themselves, so that a search sees every write before it.
type textSearch struct {
	words   [][]byte
	wide    [][]byte      // words that not every segment has a stream for
	changed []storage.Doc // issues that the index holds wrongly, newest first
	through storage.Doc   // newer issues are not in the index
	docs    storage.Docs  // nil: any issue
	folded  []byte        // scratch of mayHave
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
	s = &textSearch{}
	eachWord(query, func(word []byte) {
		if !slices.ContainsFunc(s.words, func(w []byte) bool { return bytes.Equal(w, word) }) {
			s.words = append(s.words, bytes.Clone(word))
		}
	})
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
	indexed := &storage.DocsExcept{Not: s.changed}
	var segments storage.AnyDocs
	for i := range m.Segments {
		docs, err := s.segment(v, streams, &m, &m.Segments[i])
		if err != nil {
			return nil, err
		}
		segments = append(segments, docs)
	}
	indexed.From = segments
	changed := storage.DocList(s.changed)
	streams.AnyDocs = append(streams.AnyDocs, indexed, &changed)
	tail, err := v.NewestDocs(issueTable, m.Through)
	if err != nil {
		return nil, err
	}
	streams.AnyDocs = append(streams.AnyDocs, tail)
	return s, nil
}

// segment streams the docs of a segment that have all words, as far as there are streams.
func (s *textSearch) segment(v *View, streams *searchStreams, m *storage.Manifest, of *storage.Segment) (storage.Docs, error) {
	var all storage.AllOrds
	for _, word := range s.words {
		ords, err := wordStream(streams.reader, of, word)
		if err != nil {
			return nil, err
		}
		if ords != nil {
			all = append(all, ords)
		} else if !slices.ContainsFunc(s.wide, func(w []byte) bool { return bytes.Equal(w, word) }) {
			s.wide = append(s.wide, word)
		}
	}
	var skip func(storage.Doc) (bool, error)
	if m.Replaced > 0 {
		r, err := v.replaced()
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
	var terms []storage.Key
	var ords []uint32
	total, whole := 0, true
	err := r.Terms(of.Number, wordTerms, word,
		func(n int) bool {
			total += n
			whole = whole && total <= searchRead
			return whole
		},
		func(term []byte, first bool, _ int, some []uint32) bool {
			if first {
				terms = append(terms, bytes.Clone(term))
			}
			ords = append(ords, some...)
			return total <= searchWhole || len(terms) <= searchLists
		})
	switch {
	case err != nil:
		return nil, err
	case total > searchWhole && len(terms) > searchLists:
		return nil, nil
	case len(terms) > searchLists && !whole:
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
	if len(terms) > 1 && len(ords) > int(of.Docs)/sortedOrds {
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
	} else if _, lacks := slices.BinarySearchFunc(s.changed, doc, func(a, b storage.Doc) int { return compare(uint64(b), uint64(a)) }); lacks {
		words = s.words
	}
	if len(words) == 0 {
		return true, nil
	}
	if !s.mayHave(rec.JSON(), words) {
		return false, nil
	}
	var t searchText
	if err := json.Unmarshal(rec.JSON(), &t); err != nil {
		return false, fmt.Errorf("read an issue: %w", err)
	}
	return begins(words, t.Title, text(t.Identifier), text(t.Description)), nil
}

// mayHave looks for words in the JSON of an issue. It excludes most issues that don't have
// them at a fraction of the cost of decoding. Words are letters and digits, which JSON
// does not escape. Letters other than those of ASCII have many forms: if the issue has
// some the answer is yes.
func (s *textSearch) mayHave(body []byte, words [][]byte) bool {
	var ascii bool
	if s.folded, ascii = appendLower(s.folded[:0], body); !ascii {
		return true
	}
	for _, word := range words {
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

// begins reports whether each of the words begins a word of one of the texts.
func begins(words [][]byte, texts ...string) bool {
	met := make([]bool, len(words))
	left := len(words)
	for _, t := range texts {
		if left == 0 {
			break
		}
		eachWord(t, func(word []byte) {
			for i, w := range words {
				if !met[i] && bytes.HasPrefix(word, w) {
					met[i] = true
					left--
				}
			}
		})
	}
	return left == 0
}
