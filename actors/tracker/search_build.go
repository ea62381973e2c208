package tracker

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// A segment is made from at most so many issues and bytes of them: enough to be worth its
// batches, little enough to be gathered in memory.
const (
	flushIssues = 4096
	flushBytes  = 8 << 20
)

// segmentBuild is a segment made from the oldest issues that the index lacks, on the
// goroutine of the timer that asked for it, at one moment.
type segmentBuild struct {
	// from is the Manifest.Through that it goes on behind.
	from, through storage.Doc
	changed       []changedIssue
	rows          []storage.SegmentRow
	segment       storage.Segment
	more          bool // there are issues that it doesn't hold
	bytes         int
	issues        []buildIssue
}

// changedIssue is an issue that was changed or deleted since it was indexed.
type changedIssue struct {
	id     storage.ID
	change uint64
}

// buildIssue is an issue to be indexed.
type buildIssue struct {
	doc        storage.Doc
	text       searchText
	team       storage.ID
	restricted bool
}

// build gathers the issues and makes the segment. Its rows are numbered 0.
func (b *segmentBuild) build(v *View) error {
	m, err := v.manifest()
	if err != nil {
		return err
	}
	b.from, b.through = m.Through, m.Through
	err = v.eachInTail(m.Through, func(rec storage.Record) (bool, error) {
		if b.full() {
			b.more = true
			return false, nil
		}
		return true, b.add(rec)
	})
	if err != nil {
		return fmt.Errorf("read the issues to index: %w", err)
	}
	for i := range b.issues {
		b.through = max(b.through, b.issues[i].doc)
	}
	if err := b.addChanged(v); err != nil {
		return fmt.Errorf("read the issues to index: %w", err)
	}
	slices.SortFunc(b.issues, func(a, b buildIssue) int { return cmp.Compare(b.doc, a.doc) })
	words := segmentWords{build: searchIndex.NewBuilder(), known: knownWordLists.Get().(*knownWordList), titles: map[uint64]*storage.TermPostings{}}
	words.known.segment++
	defer words.known.release()
	for i := range b.issues {
		words.add(&b.issues[i])
	}
	if words.build.Docs() > 0 {
		b.rows, b.segment = words.build.Rows(0)
	}
	b.issues, b.bytes = nil, 0
	for _, row := range b.rows {
		b.bytes += len(row.Fields) + len(row.Value)
	}
	return nil
}

// full reports whether the segment has issues enough.
func (b *segmentBuild) full() bool {
	return len(b.issues) >= flushIssues || b.bytes >= flushBytes || len(b.changed) >= flushIssues
}

// add takes up an issue.
func (b *segmentBuild) add(rec storage.Record) error {
	id, err := storedID(rec)
	if err != nil {
		return err
	}
	t := buildIssue{doc: storage.DocOf(id), team: rec.Team(), restricted: rec.Flags()&issueRestricted != 0}
	if err := json.Unmarshal(rec.JSON(), &t.text); err != nil {
		return fmt.Errorf("read an issue: %w", err)
	}
	b.issues = append(b.issues, t)
	b.bytes += len(rec.JSON())
	return nil
}

// addChanged takes up the issues that were changed or deleted.
func (b *segmentBuild) addChanged(v *View) error {
	tail := b.more // some of the tail is left
	return v.eachChanged(func(id storage.ID, change uint64) (bool, error) {
		doc := storage.DocOf(id)
		switch {
		case b.full():
			b.more = true
			return false, nil
		case doc > b.through && tail:
			return true, nil // its turn comes with the tail
		case doc > b.through: // the newest issue, which was deleted
			b.through = doc
		case doc <= b.from:
			if _, err := issues.Record(v, issueKey(id), b.add); err != nil {
				return false, err
			}
		} // else it was taken up with the tail, unless it was deleted
		b.changed = append(b.changed, changedIssue{id, change})
		return true, nil
	})
}

// segmentWords puts the words of issues into a segment.
type segmentWords struct {
	build  *storage.SegmentBuilder
	known  *knownWordList
	titles map[uint64]*storage.TermPostings
	words  []*storage.TermPostings // by indexedTerm.at
	ord    uint32
	count  int
}

// knownWordList keeps words and their stems from one segment to the next: stemming costs
// more than all the rest of indexing a word.
type knownWordList struct {
	words map[string]*indexedWord
	stems map[string]*indexedTerm
	// numbers are words with digits, of which there is no end; titles has the terms of
	// words of titles.
	numbers map[string]*indexedWord
	titles  stems
	// segment counts the segments, to tell which terms are in the one that is made.
	segment uint64
}

// indexedTerm is a term, and where its postings are if it is in the segment that is made.
type indexedTerm struct {
	key     string
	segment uint64
	at      int
}

// indexedWord is a word and its stem; nil for a word that doesn't count in a comparison.
type indexedWord struct {
	indexedTerm
	stem          *indexedTerm
	indexedNumber indexedTerm // the stem of a word with digits, which is the word
}

// knownWordsKept bounds the words that are kept, to some 8 MB; those with digits count
// by themselves. knownTitleWords is how many words of titles are kept.
const (
	knownWordsKept   = 40_000
	knownNumbersKept = 4_000
	knownTitleWords  = 4096
)

// knownWordLists has one for each segment that is made at a time.
var knownWordLists = sync.Pool{New: func() any {
	return &knownWordList{
		words: map[string]*indexedWord{}, stems: map[string]*indexedTerm{}, numbers: map[string]*indexedWord{},
		titles: stems{make([]knownWord, knownTitleWords)},
	}
}}

// release gives the words back for the next segment.
func (k *knownWordList) release() {
	if len(k.words) > knownWordsKept {
		clear(k.words)
		clear(k.stems)
	}
	if len(k.numbers) > knownNumbersKept {
		clear(k.numbers)
	}
	knownWordLists.Put(k)
}

func (k *knownWordList) word(word []byte) *indexedWord {
	if known := k.words[string(word)]; known != nil {
		return known
	}
	if known := k.numbers[string(word)]; known != nil {
		return known
	}
	made := &indexedWord{indexedTerm: indexedTerm{key: string(word) + "\x00"}}
	if bytes.ContainsAny(word, "0123456789") {
		made.stem = &made.indexedNumber
		made.indexedNumber.key = made.key
		k.numbers[string(word)] = made
		return made
	}
	if s, stop := stem(word); !stop {
		if made.stem = k.stems[s]; made.stem == nil {
			made.stem = &indexedTerm{key: s + "\x00"}
			k.stems[s] = made.stem
		}
	}
	k.words[string(word)] = made
	return made
}

// postings gives a term's postings in the segment.
func (w *segmentWords) postings(dictionary int, t *indexedTerm) *storage.TermPostings {
	if t.segment != w.known.segment {
		t.segment, t.at = w.known.segment, len(w.words)
		w.words = append(w.words, w.build.Term(dictionary, t.key))
	}
	return w.words[t.at]
}

// add takes up an issue.
func (w *segmentWords) add(t *buildIssue) {
	w.ord, w.count = uint32(w.build.Docs()), 0
	weighed := func(weight byte) func([]byte) {
		return func(word []byte) {
			known := w.known.word(word)
			w.postings(wordTerms, &known.indexedTerm).Has(w.ord)
			if w.count += int(weight); known.stem != nil && weight > 0 {
				w.postings(stemTerms, known.stem).Add(w.ord, weight)
			}
		}
	}
	eachWord(t.text.Title, weighed(2))
	eachWord(text(t.text.Description), weighed(1))
	eachWord(text(t.text.Identifier), weighed(0))
	terms := w.known.titles.terms(t.text.Title)
	payload := titlePayload(nil, terms)
	for _, term := range terms {
		p := w.titles[term.hash]
		if p == nil {
			p = w.build.Term(titleTermsOf, string(titleKey(nil, term.hash)))
			w.titles[term.hash] = p
		}
		p.Put(w.ord, payload)
	}
	w.build.Doc(&storage.SegmentDoc{
		Doc: t.doc, Length: lengthByte(w.count), Class: storage.Class{Group: t.team, Restricted: t.restricted},
	})
}
