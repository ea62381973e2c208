package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// What a word of a search may cost in lists. Words that begin with it have a list
// each; one with more blocks than searchBlocks occurs so often that looking at the
// issues themselves is cheaper, and so is it for a beginning of very many words.
const (
	searchBlocks = 1024
	// searchLists is how many lists are streamed side by side; more are read whole.
	searchLists = 8
	// maxSearched bounds the issues whose text a page looks through.
	maxSearched = 20_000
)

// textSearch is the search filter of a list: every word of the query must begin a
// word of title, description or identifier (Decision 17). Issues that the index
// lacks are looked at themselves, so that a search sees every write before it.
type textSearch struct {
	words   [][]byte
	wide    [][]byte      // words that no stream stands for
	pending []storage.Doc // newest first
	docs    storage.Docs  // nil: any issue
}

// search prepares a search; nil when the query has no word, and so no condition. It
// must be closed, by the list it is given to or by close.
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
	oldest, err := v.Number(searchTotals, oldestPending[:])
	if err == nil {
		err = v.eachPending(oldest, func(id storage.ID, _ []byte) (bool, error) {
			s.pending = append(s.pending, storage.DocOf(id))
			return true, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read what the index lacks: %w", err)
	}
	slices.Reverse(s.pending)
	var all storage.AllDocs
	defer func() {
		if err != nil {
			err = errors.Join(err, all.Close())
		}
	}()
	for _, word := range s.words {
		docs, wide, err := v.beginning(word)
		if err != nil {
			return nil, err
		}
		if wide {
			s.wide = append(s.wide, word)
		}
		if docs != nil {
			all = append(all, docs)
		}
	}
	if len(all) > 0 {
		recent := storage.DocList(s.pending)
		s.docs = storage.AnyDocs{&storage.ButDocs{From: all, Not: s.pending}, &recent}
	}
	return s, nil
}

// beginning streams the indexed issues with a word that begins with the given one;
// wide tells that there are too many of them or of such words.
func (v *View) beginning(word []byte) (docs storage.Docs, wide bool, err error) {
	r := wordPostings.Read(v)
	var lists []storage.Key
	wide, err = r.Lists(word, searchBlocks, func(list []byte, _ int) bool {
		lists = append(lists, bytes.Clone(list))
		return true
	})
	if err != nil || wide {
		return nil, wide, errors.Join(err, r.Close())
	}
	if len(lists) > searchLists {
		whole, err := wholeLists(r, lists)
		return whole, false, errors.Join(err, r.Close())
	}
	if err := r.Close(); err != nil {
		return nil, false, err
	}
	any := make(storage.AnyDocs, 0, len(lists))
	for _, list := range lists {
		l := wordPostings.Read(v)
		any = append(any, l)
		if err := l.List(list, math.MaxUint64); err != nil {
			return nil, false, errors.Join(err, any.Close())
		}
	}
	return any, false, nil
}

// wholeLists reads lists into one.
func wholeLists(r *storage.PostingReader, lists []storage.Key) (*storage.DocList, error) {
	var docs storage.DocList
	for _, list := range lists {
		if err := r.List(list, math.MaxUint64); err != nil {
			return nil, err
		}
		for r.Valid() {
			docs = append(docs, r.Doc())
			if err := r.Step(); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(docs, func(a, b storage.Doc) int { return compare(uint64(b), uint64(a)) })
	docs = slices.Compact(docs)
	return &docs, nil
}

// keeps looks at the text of an issue where no stream vouches for it.
func (s *textSearch) keeps(rec storage.Record) (bool, error) {
	words := s.wide
	if len(s.pending) > 0 {
		if id, ok := storage.ParseID(rec.JSON()[len(`{"id":"`):][:36]); ok {
			doc := storage.DocOf(id)
			if _, lacks := slices.BinarySearchFunc(s.pending, doc, func(a, b storage.Doc) int { return compare(uint64(b), uint64(a)) }); lacks {
				words = s.words
			}
		}
	}
	if len(words) == 0 {
		return true, nil
	}
	var t searchText
	if err := json.Unmarshal(rec.JSON(), &t); err != nil {
		return false, fmt.Errorf("read an issue: %w", err)
	}
	return begins(words, t.Title, text(t.Identifier), text(t.Description)), nil
}

// begins tells whether each of the words begins a word of one of the texts.
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
