package tracker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"switchyard/storage"
)

const timerMergeSearch = "search.merge"

// What one merge takes on: enough to be worth its commit, little enough that the
// workspace's other commands hardly wait for it.
const (
	mergeIssues = 512
	mergeWords  = 20_000
)

// mergeSearchOp brings the index up to date with some of the issues that changed.
var mergeSearchOp = NewCommand[TimerIn, None]("MergeSearch", "Merge changed issues into the search index", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	more, err := tx.mergeSearch()
	if err != nil {
		return Reply{}, fmt.Errorf("merge into the search index: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.rearm(mergeSearch, more, time.Time{})
})

// merge gathers the changes of the lists.
type merge struct {
	words  map[string][]storage.Posting
	titles map[uint64][]storage.Posting
	// By how much the totals change.
	issues, length int
	newest         storage.Doc
	merged         []storage.ID
	count          int // changes of word lists
}

// mergeSearch merges the oldest issues that have a pending row, and tells whether
// there are more.
func (tx *Tx) mergeSearch() (more bool, err error) {
	m := merge{words: map[string][]storage.Posting{}, titles: map[uint64][]storage.Posting{}}
	err = tx.Rows(searchPending, nil, nil, func(fields, value []byte) (bool, error) {
		if more = len(m.merged) == mergeIssues || m.count >= mergeWords; more {
			return false, nil
		}
		if len(fields) != len(storage.ID{}) {
			return false, fmt.Errorf("%w: pending row's key of %d bytes", storage.ErrFormat, len(fields))
		}
		was, err := parseIndexed(value)
		if err != nil {
			return false, err
		}
		id := storage.ID(fields)
		row, err := issues.Get(tx, issueKey(id))
		if err != nil {
			return false, err
		}
		if row == nil {
			m.add(id, &was, nil)
		} else {
			m.add(id, &was, &row.Value)
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	if err := tx.applyWords(&m); err != nil {
		return false, err
	}
	if err := tx.applyTitles(&m); err != nil {
		return false, err
	}
	if err := tx.addTotals(&m); err != nil {
		return false, err
	}
	if err := tx.recent().load(tx); err != nil {
		return false, err
	}
	for _, id := range m.merged {
		if err := tx.Writer().DeleteValue(searchPending, id[:]); err != nil {
			return false, err
		}
		tx.recent().merge(storage.DocOf(id))
	}
	return more, nil
}

// add takes up an issue: was is what the index holds, t what it is to hold; nil for
// a deleted one.
func (m *merge) add(id storage.ID, was *indexed, t *Issue) {
	doc := storage.DocOf(id)
	m.merged = append(m.merged, id)
	var before, after bag
	if was.text == textOther {
		before = bagOf(was.title, was.description, was.identifier)
		m.issues--
	}
	if t != nil && was.text != textSame {
		after = bagOf(t.Title, text(t.Description), text(t.Identifier))
		m.issues++
	}
	m.length += after.length - before.length
	length := lengthByte(after.length)
	same := lengthByte(before.length) == length
	for word, weight := range after.weights {
		if old, had := before.weights[word]; !had || !same || old != weight {
			m.words[word] = append(m.words[word], storage.Posting{Doc: doc, Payload: []byte{weight, length}})
			m.count++
		}
	}
	for word := range before.weights {
		if _, has := after.weights[word]; !has {
			m.words[word] = append(m.words[word], storage.Posting{Doc: doc})
			m.count++
		}
	}
	m.addTitle(doc, was, t)
}

func (m *merge) addTitle(doc storage.Doc, was *indexed, t *Issue) {
	var before, after []term
	if was.titled {
		before = titleTerms(was.title)
	}
	if t != nil && t.mayRepeat() {
		after = titleTerms(t.Title)
		m.newest = max(m.newest, doc)
	}
	if was.titled && after != nil && was.title == t.Title {
		return
	}
	payload := titlePayload(nil, after)
	for _, word := range after {
		m.titles[word.hash] = append(m.titles[word.hash], storage.Posting{Doc: doc, Payload: payload})
	}
	for _, word := range before {
		if !slices.ContainsFunc(after, func(a term) bool { return a.hash == word.hash }) {
			m.titles[word.hash] = append(m.titles[word.hash], storage.Posting{Doc: doc})
		}
	}
}

func (tx *Tx) applyWords(m *merge) (err error) {
	if len(m.words) == 0 {
		return nil
	}
	w, err := storage.NewPostingWriter(tx, &wordPostings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	sorted := make([]string, 0, len(m.words))
	for word := range m.words {
		sorted = append(sorted, word)
	}
	slices.Sort(sorted)
	var list, row storage.Key
	for _, word := range sorted {
		changes := m.words[word]
		slices.Reverse(changes) // issues came oldest first
		list = list[:0].Str(word)
		had, has, err := w.Apply(list, changes)
		if err != nil {
			return err
		}
		if had == has {
			continue
		}
		s, stop := stem([]byte(word))
		if stop || s == word {
			continue
		}
		row = row[:0].Str(s).Str(word)
		if has {
			err = tx.Writer().SetValue(searchStems, row, nil)
		} else {
			err = tx.Writer().DeleteValue(searchStems, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) applyTitles(m *merge) (err error) {
	if len(m.titles) == 0 {
		return nil
	}
	w, err := storage.NewPostingWriter(tx, &titlePostings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	sorted := make([]uint64, 0, len(m.titles))
	for hash := range m.titles {
		sorted = append(sorted, hash)
	}
	slices.Sort(sorted)
	var list storage.Key
	for _, hash := range sorted {
		changes := m.titles[hash]
		slices.Reverse(changes)
		list = termList(list[:0], hash)
		if _, _, err := w.Apply(list, changes); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) addTotals(m *merge) error {
	for _, by := range []struct {
		subject storage.ID
		by      int
	}{{indexedIssues, m.issues}, {indexedLength, m.length}} {
		n, err := tx.Counter(searchTotals, by.subject)
		if err != nil {
			return err
		}
		if by.by == 0 {
			continue
		}
		if err := tx.SetCounter(searchTotals, by.subject, n+uint64(by.by)); err != nil { // wraps for less
			return err
		}
	}
	n, err := tx.Counter(searchTotals, newestIndexed)
	if err != nil || n >= uint64(m.newest) {
		return err
	}
	return tx.SetCounter(searchTotals, newestIndexed, uint64(m.newest))
}
