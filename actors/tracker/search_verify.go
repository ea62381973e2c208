package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// searchRows are the plain rows of the search index.
var searchRows = []storage.RowSpec{
	{ID: searchPending, Name: "issue to index", Check: func(_ *storage.View, fields, value []byte) error {
		_, err := parseIndexed(value)
		if err == nil && len(fields) != len(storage.ID{}) {
			err = fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(fields))
		}
		return err
	}},
	{ID: searchWords, Name: wordPostings.Name, Check: func(_ *storage.View, fields, value []byte) error {
		_, err := wordPostings.EachPosting(fields, value, func([]byte, storage.Doc, []byte) {})
		return err
	}},
	{ID: searchStems, Name: "stem", Check: checkStem},
	{ID: searchTitles, Name: titlePostings.Name, Check: func(_ *storage.View, fields, value []byte) error {
		_, err := titlePostings.EachPosting(fields, value, func([]byte, storage.Doc, []byte) {})
		return err
	}},
	storage.Counter(searchTotals, "search totals"),
}

func checkStem(v *storage.View, fields, _ []byte) error {
	s, word, ok := bytes.Cut(fields, []byte{0})
	if !ok || len(word) < 2 {
		return fmt.Errorf("%w: stem's key of %d bytes", storage.ErrFormat, len(fields))
	}
	if made, stop := stem(word[:len(word)-1]); stop || made != string(s) {
		return fmt.Errorf("%q is not the stem of %q", s, word)
	}
	there, err := v.Has(searchWords, word)
	if err == nil && !there {
		err = fmt.Errorf("no issue has the word %q", word)
	}
	return err
}

// postingSum adds up postings without keeping them: equal sets have equal sums.
type postingSum struct{ n, hash uint64 }

func (s *postingSum) add(list []byte, doc storage.Doc, payload []byte) {
	var buf [160]byte
	b := binary.BigEndian.AppendUint64(append(append(buf[:0], list...), payload...), uint64(doc))
	s.n++
	s.hash += xxhash.Sum64(b)
}

// searchCheck proves the index of a workspace against its issues.
type searchCheck struct {
	words, titles  postingSum
	issues, length uint64
}

// add adds what the index is to hold of an issue.
func (c *searchCheck) add(id storage.ID, t *Issue, was *indexed) {
	title, description, identifier := "", "", ""
	has, titled := t != nil, t != nil && t.mayRepeat()
	if t != nil {
		title, description, identifier = t.Title, text(t.Description), text(t.Identifier)
	}
	heading := title
	if was != nil {
		titled, heading = was.titled, was.title
		switch was.text {
		case textNone:
			has = false
		case textOther:
			has, title, description, identifier = true, was.title, was.description, was.identifier
		}
	}
	doc := storage.DocOf(id)
	if has {
		b := bagOf(title, description, identifier)
		c.issues++
		c.length += uint64(b.length)
		for word, weight := range b.weights {
			c.words.add(wordList([]byte(word)), doc, []byte{weight, lengthByte(b.length)})
		}
	}
	if titled {
		terms := titleTerms(heading)
		for _, term := range terms {
			c.titles.add(termList(nil, term.hash), doc, titlePayload(nil, terms))
		}
	}
}

// checkSearch proves that the search index holds of every issue what it is to hold,
// and nothing else.
func checkSearch(v *storage.View, say sayer) error {
	var due, found searchCheck
	view := View{View: *v}
	err := issues.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := issues.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		was, err := view.pending(row.Value.id())
		if err != nil {
			return true, nil // the row's own check reports it
		}
		due.add(row.Value.id(), &row.Value, was)
		return true, nil
	})
	if err != nil {
		return err
	}
	oldest, err := v.Number(searchTotals, oldestPending[:])
	if err != nil {
		return err
	}
	err = v.Rows(searchPending, nil, nil, func(fields, value []byte) (bool, error) {
		was, err := parseIndexed(value)
		if err != nil || len(fields) != len(storage.ID{}) {
			return true, nil
		}
		if uint64(storage.DocOf(storage.ID(fields))) < oldest {
			say("issue to index", fields, "is older than the oldest there should be")
		}
		there, err := view.Has(issueTable, issueKey(storage.ID(fields)))
		if err == nil && !there { // deleted, and still to be taken out
			due.add(storage.ID(fields), nil, &was)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	if err := found.read(&view, say); err != nil {
		return err
	}
	if found.words != due.words {
		say(wordPostings.Name, nil, "holds %d postings, the issues call for %d, or for others", found.words.n, due.words.n)
	}
	if found.titles != due.titles {
		say(titlePostings.Name, nil, "holds %d postings, the issues call for %d, or for others", found.titles.n, due.titles.n)
	}
	if found.issues != due.issues || found.length != due.length {
		say("search totals", nil, "say %d issues of length %d, there are %d of %d", found.issues, found.length, due.issues, due.length)
	}
	return nil
}

func (c *searchCheck) read(v *View, say sayer) (err error) {
	var last []byte
	err = v.Rows(searchWords, nil, nil, func(fields, value []byte) (bool, error) {
		list, err := wordPostings.EachPosting(fields, value, c.words.add)
		if err != nil {
			return true, nil // the row's own check reports it
		}
		if len(list) > 1 && !bytes.Equal(list, last) {
			last = append(last[:0], list...)
			word := list[:len(list)-1]
			s, stop := stem(word)
			if stop || s == string(word) {
				return true, nil
			}
			there, err := v.Has(searchStems, append(storage.Key(nil).Str(s), list...))
			if err == nil && !there {
				say("stem", list, "is missing for the word %q", word)
			}
			return true, err
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	err = v.Rows(searchTitles, nil, nil, func(fields, value []byte) (bool, error) {
		_, _ = titlePostings.EachPosting(fields, value, c.titles.add)
		return true, nil
	})
	if err != nil {
		return err
	}
	if c.issues, err = v.Number(searchTotals, indexedIssues[:]); err != nil {
		return err
	}
	c.length, err = v.Number(searchTotals, indexedLength[:])
	return err
}
