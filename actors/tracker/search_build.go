package tracker

import (
	"cmp"
	"fmt"
	"slices"

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
	// from is the Manifest.Through after which it continues.
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
	words := segmentWords{build: searchIndex.NewBuilder(len(b.issues))}
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
	build *storage.SegmentBuilder
	stems []uint32 // by the number of a word, that of its stem; noStem for none
	key   storage.Key
	ord   uint32
	count int
}

// noStem is the stem of a word that doesn't count in a comparison.
const noStem = ^uint32(0)

// word adds a word of the issue.
func (w *segmentWords) word(word []byte, weight byte) {
	w.key = wordKey(w.key[:0], word)
	number, fresh := w.build.Term(wordTerms, w.key)
	w.build.Has(wordTerms, number, w.ord)
	if fresh {
		w.stems = append(w.stems, w.stem(word))
	}
	w.count += int(weight)
	if stem := w.stems[number]; stem != noStem && weight > 0 {
		w.build.Add(stemTerms, stem, w.ord, weight)
	}
}

// stem numbers the stem of a word that came for the first time.
func (w *segmentWords) stem(word []byte) uint32 {
	forms := formsOf(word)
	if forms.stop {
		return noStem
	}
	w.key = wordKey(w.key[:0], forms.stem)
	number, _ := w.build.Term(stemTerms, w.key)
	return number
}

// add takes up an issue.
func (w *segmentWords) add(t *buildIssue) {
	w.ord, w.count = uint32(w.build.Docs()), 0
	eachWord(t.text.Title, func(word []byte) { w.word(word, 2) })
	eachWord(text(t.text.Description), func(word []byte) { w.word(word, 1) })
	eachWord(text(t.text.Identifier), func(word []byte) { w.word(word, 0) })
	terms := titleTerms(t.text.Title)
	payload := titlePayload(nil, terms)
	for _, term := range terms {
		w.key = titleKey(w.key[:0], term.hash)
		number, _ := w.build.Term(titleTermsOf, w.key)
		w.build.Put(titleTermsOf, number, w.ord, payload)
	}
	w.build.Doc(&storage.SegmentDoc{
		Doc: t.doc, Length: lengthByte(w.count), Class: storage.Class{Group: t.team, Restricted: t.restricted}, Signature: secondSignature(terms),
	})
}
