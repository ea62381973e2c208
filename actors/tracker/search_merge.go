package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

const timerMergeSearch = "search.merge"

// What one merge takes on: enough to be worth its commit, little enough that the
// workspace's other commands hardly wait for it.
const (
	mergeIssues = 768
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
	words  map[string]*wordChanges
	titles map[uint64][]storage.Posting
	// By how much the totals change.
	issues, length int
	newest         storage.Doc
	merged         []storage.ID   // oldest first
	done           int            // how many of them
	count          int            // changes of word lists
	met            []*wordChanges // by the issue in hand
	payloads       []byte         // space for postings' payloads
}

// wordChanges are the changes of one word's list, oldest issue first.
type wordChanges struct {
	postings []storage.Posting
	doc      storage.Doc // the issue that met the word last
}

// payload keeps a payload.
func (m *merge) payload(b ...byte) []byte {
	if len(m.payloads)+len(b) > cap(m.payloads) {
		m.payloads = make([]byte, 0, 16<<10)
	}
	start := len(m.payloads)
	m.payloads = append(m.payloads, b...)
	return m.payloads[start:len(m.payloads):len(m.payloads)]
}

// change adds a change of a word's list; a nil payload takes the issue out.
func (m *merge) change(word []byte, doc storage.Doc, payload []byte) *wordChanges {
	c := m.words[string(word)]
	if c == nil {
		c = &wordChanges{}
		m.words[string(word)] = c
	}
	c.postings = append(c.postings, storage.Posting{Doc: doc, Payload: payload})
	c.doc = doc
	m.count++
	return c
}

// addNew takes up the text of an issue that the index has nothing of. It is add for
// most issues, and counts the words right in the changes.
func (m *merge) addNew(doc storage.Doc, t *searchText) {
	m.met = m.met[:0]
	length := 0
	count := func(weight byte) func([]byte) {
		return func(word []byte) {
			length += int(weight)
			if c := m.words[string(word)]; c != nil && c.doc == doc {
				p := c.postings[len(c.postings)-1].Payload
				p[0] = min(p[0], math.MaxUint8-weight) + weight
				return
			}
			m.met = append(m.met, m.change(word, doc, m.payload(weight, 0)))
		}
	}
	eachWord(t.Title, count(2))
	eachWord(text(t.Description), count(1))
	eachWord(text(t.Identifier), count(0))
	for _, c := range m.met {
		c.postings[len(c.postings)-1].Payload[1] = lengthByte(length)
	}
	m.length += length
	m.issues++
}

// searchText is what of a stored issue goes into the index.
type searchText struct {
	Title       string      `json:"title"`
	Description *string     `json:"description"`
	Identifier  *string     `json:"identifier"`
	Status      IssueStatus `json:"status"`
	IsDraft     bool        `json:"isDraft"`
}

// mergeSearch merges the oldest issues that have a pending row, and tells whether
// there are more.
func (tx *Tx) mergeSearch() (more bool, err error) {
	m := merge{words: map[string]*wordChanges{}, titles: map[uint64][]storage.Posting{}}
	if err := tx.recent().load(tx); err != nil {
		return false, err
	}
	left := m.take(tx.recent().all)
	for _, id := range m.merged {
		if m.count >= mergeWords {
			left = min(left, storage.DocOf(id))
			continue
		}
		if err := tx.mergeIssue(&m, id); err != nil {
			return false, err
		}
		m.done++
	}
	m.merged = m.merged[:m.done]
	if err := tx.applyWords(&m); err != nil {
		return false, err
	}
	if err := tx.applyTitles(&m); err != nil {
		return false, err
	}
	if err := tx.addTotals(&m); err != nil {
		return false, err
	}
	for _, id := range m.merged {
		if err := tx.Writer().DeleteValue(searchPending, id[:]); err != nil {
			return false, err
		}
		tx.recent().merge(storage.DocOf(id))
	}
	if more = left < math.MaxUint64; !more {
		// What comes is newer than everything there is.
		clock, err := tx.Counter(clockTable, storage.ID{})
		if err != nil {
			return false, err
		}
		left = storage.Doc(clock)
	}
	return more, tx.SetCounter(searchTotals, oldestPending, uint64(left))
}

// take chooses the issues of a merge among those that have a pending row, the
// oldest changes first, and gives the oldest issue that is left.
func (m *merge) take(all []recentTitle) (left storage.Doc) {
	left = math.MaxUint64
	for i := range all {
		switch e := &all[i]; {
		case e.state != titlePending:
		case len(m.merged) < mergeIssues:
			m.merged = append(m.merged, e.id)
		default:
			left = min(left, e.doc)
		}
	}
	slices.SortFunc(m.merged, func(a, b storage.ID) int { return bytes.Compare(a[:], b[:]) })
	return left
}

// mergeIssue takes up one issue.
func (tx *Tx) mergeIssue(m *merge, id storage.ID) error {
	doc := storage.DocOf(id)
	title := &tx.recent().all[tx.recent().at[doc]]
	was := &indexed{}
	if !title.blank {
		var err error
		if was, err = tx.pending(id); err != nil {
			return err
		}
		if was == nil {
			return fmt.Errorf("issue %s is noted as changed, but has no pending row", id)
		}
	}
	t := title.text
	if t == nil {
		_, err := issues.Record(tx, issueKey(id), func(rec storage.Record) error {
			t = &searchText{}
			return json.Unmarshal(rec.JSON(), t)
		})
		if err != nil {
			return err
		}
	}
	if was.text == textNone && t != nil {
		m.addNew(doc, t)
	} else {
		m.add(doc, was, t)
	}
	var terms []term
	if t != nil && !t.Status.Closed() && !t.IsDraft {
		terms = title.terms
	}
	m.addTitle(doc, was, terms)
	return nil
}

// add takes up the text of an issue: was is what the index holds, t what it is to
// hold; nil for a deleted one.
func (m *merge) add(doc storage.Doc, was *indexed, t *searchText) {
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
			m.change([]byte(word), doc, m.payload(weight, length))
		}
	}
	for word := range before.weights {
		if _, has := after.weights[word]; !has {
			m.change([]byte(word), doc, nil)
		}
	}
}

// addTitle takes up the title of an issue, given by its terms; none for one that
// can't be a duplicate.
func (m *merge) addTitle(doc storage.Doc, was *indexed, after []term) {
	var before []term
	if was.titled {
		before = titleTerms(was.title)
	}
	if len(after) > 0 {
		m.newest = max(m.newest, doc)
	}
	if slices.EqualFunc(before, after, func(a, b term) bool { return a.hash == b.hash }) {
		return
	}
	payload := m.payload(titlePayload(nil, after)...)
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
	w := storage.NewPostingWriter(tx, &wordPostings)
	defer func() { err = errors.Join(err, w.Close()) }()
	sorted := make([]string, 0, len(m.words))
	for word := range m.words {
		sorted = append(sorted, word)
	}
	slices.Sort(sorted)
	var list, row storage.Key
	for _, word := range sorted {
		changes := m.words[word].postings
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
	w := storage.NewPostingWriter(tx, &titlePostings)
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
