package tracker

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// searchRows are the plain rows of the search index. Those of segments are checked
// together.
var searchRows = []storage.RowSpec{
	{ID: searchChanged, Name: "issue to index", Check: func(_ *storage.View, fields, value []byte) error {
		if len(fields) != len(storage.ID{}) || len(value) != 8 {
			return fmt.Errorf("%w: row of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
		}
		return nil
	}},
	{ID: searchReplaced, Name: "issue in several segments", Check: func(_ *storage.View, fields, value []byte) error {
		_, _, err := parseReplaced(fields, value)
		return err
	}},
	{ID: searchManifest, Name: "search manifest", Check: func(_ *storage.View, fields, value []byte) error {
		if len(fields) > 0 {
			return fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(fields))
		}
		_, err := storage.ParseManifest(value)
		return err
	}},
	{ID: searchSegments, Name: searchIndex.Name},
}

// postingSum adds up postings without keeping them: equal sets have equal sums.
type postingSum struct{ n, hash uint64 }

func (s *postingSum) add(dictionary int, term []byte, doc storage.Doc, payload []byte) {
	var buf [192]byte
	b := append(append(append(buf[:0], byte(dictionary)), term...), payload...)
	s.n++
	s.hash += xxhash.Sum64(binary.BigEndian.AppendUint64(b, uint64(doc)))
}

// addColumns adds what the columns hold of a doc.
func (s *postingSum) addColumns(doc storage.Doc, length byte, class storage.Class) {
	restricted := byte(0)
	if class.Restricted {
		restricted = 1
	}
	s.add(0xff, class.Group[:], doc, []byte{length, restricted})
}

// searchCheck proves the index of a workspace against its issues.
type searchCheck struct {
	view     *View
	manifest storage.Manifest
	changed  map[storage.Doc]bool
	tail     int // how many issues are to be indexed
	ages     map[storage.Doc]uint32
	due      postingSum
	found    postingSum
	report   reporter
}

// checkSearch proves that the search index has the right rows of every issue, and no
// others.
func checkSearch(v *storage.View, report reporter) (err error) {
	c := searchCheck{view: &View{View: *v}, changed: map[storage.Doc]bool{}, ages: map[storage.Doc]uint32{}, report: report}
	if c.manifest, err = c.view.manifest(); err != nil {
		return nil // the row's own check reports it
	}
	if err := v.Rows(searchChanged, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) == len(storage.ID{}) {
			c.changed[storage.DocOf(storage.ID(fields))] = true
		}
		return true, nil
	}); err != nil {
		return err
	}
	rows := uint64(0)
	if err := v.Rows(searchReplaced, nil, nil, func(fields, value []byte) (bool, error) {
		if doc, age, err := parseReplaced(fields, value); err == nil {
			c.ages[doc] = age
			rows++
		}
		return true, nil
	}); err != nil {
		return err
	}
	if rows > c.manifest.Replaced {
		report("search manifest", nil, "says %d issues are in several segments, there are %d", c.manifest.Replaced, rows)
	}
	err = issues.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := issues.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		doc := storage.DocOf(row.Value.id())
		if doc > c.manifest.Through && !c.changed[doc] {
			c.tail++
		}
		if doc <= c.manifest.Through && !c.changed[doc] {
			c.addIssue(doc, &row.Value, rec.Flags()&issueRestricted != 0)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	c.tail += len(c.changed)
	if err := c.timers(v); err != nil {
		return err
	}
	if err := c.rows(v); err != nil {
		return err
	}
	if err := c.read(v); err != nil {
		return err
	}
	if c.found != c.due {
		report(searchIndex.Name, nil, "holds %d postings, the issues call for %d, or for others", c.found.n, c.due.n)
	}
	return nil
}

// addIssue adds the rows that the index must have of an issue.
func (c *searchCheck) addIssue(doc storage.Doc, t *Issue, restricted bool) {
	weights := map[string]byte{}
	words := map[string]bool{}
	length := 0
	for _, part := range []struct {
		text   string
		weight int
	}{{t.Title, 2}, {text(t.Description), 1}, {text(t.Identifier), 0}} {
		eachWord(part.text, func(word []byte) {
			length += part.weight
			words[string(word)] = true
			if forms := formsOf(word); !forms.stop && part.weight > 0 {
				weights[string(forms.stem)] = byte(min(255, int(weights[string(forms.stem)])+part.weight))
			}
		})
	}
	for word := range words {
		c.due.add(wordTerms, wordKey(nil, []byte(word)), doc, nil)
	}
	for s, weight := range weights {
		c.due.add(stemTerms, wordKey(nil, []byte(s)), doc, []byte{weight})
	}
	terms := titleTerms(t.Title)
	for _, term := range terms {
		c.due.add(titleTermsOf, titleKey(nil, term.hash), doc, titlePayload(nil, terms))
	}
	c.due.addColumns(doc, lengthByte(length), storage.Class{Group: t.team(), Restricted: restricted})
}

// timers proves that every pending step has a timer that will run it.
func (c *searchCheck) timers(v *storage.View) error {
	from, to := c.manifest.ToMerge()
	for _, need := range []struct {
		is   bool
		kind string
	}{{c.tail >= indexFew, timerIndexSearch}, {from < to, timerMergeSegments}} {
		if !need.is {
			continue
		}
		set, err := v.Has(timerTable, timerKey(nil, need.kind, ""))
		if err != nil {
			return err
		}
		if !set {
			c.report(timers.Name, timerKey(nil, need.kind, ""), "is not set, though there is something to do")
		}
	}
	return nil
}

// rows proves that all rows belong to segments that count or are being written.
func (c *searchCheck) rows(v *storage.View) error {
	known := map[uint32]bool{c.manifest.Flushing: true, c.manifest.Merging: true}
	for _, s := range c.manifest.Segments {
		known[s.Number] = true
	}
	return v.Rows(searchSegments, nil, nil, func(fields, _ []byte) (bool, error) {
		switch n, err := storage.SegmentOf(fields); {
		case err != nil:
			c.report(searchIndex.Name, fields, "%v", err)
		case n == 0 || !known[n]:
			c.report(searchIndex.Name, fields, "belongs to no segment")
		}
		return true, nil
	})
}

// read adds up what the segments hold, as far as it counts.
func (c *searchCheck) read(v *storage.View) error {
	r, err := searchIndex.Reader(v)
	if err != nil {
		return err
	}
	for i := range c.manifest.Segments {
		if err := c.readSegment(r, &c.manifest.Segments[i]); err != nil {
			c.report(searchIndex.Name, storage.SegmentPrefix(c.manifest.Segments[i].Number), "%v", err)
		}
	}
	return r.Close()
}

func (c *searchCheck) readSegment(r *storage.SegmentReader, s *storage.Segment) error {
	columns, err := r.Columns(s)
	if err != nil {
		return err
	}
	if err := columns.Totals(s, searchIndex.Measure); err != nil {
		return err
	}
	for ord, doc := range columns.Docs {
		if c.counts(s, doc) {
			c.found.addColumns(doc, columns.Lengths[ord], columns.Class(ord))
		}
	}
	unsigned := 0 // terms of titles that the titles' second signatures lack
	for dictionary := range searchIndex.Dictionaries {
		err := r.EachPosting(s, columns, dictionary, func(text []byte, ord uint32, payload []byte) {
			if doc := columns.Docs[ord]; c.counts(s, doc) {
				c.found.add(dictionary, text, doc, payload)
			}
			if dictionary == titleTermsOf && columns.Signatures[ord]&(term{hash: binary.BigEndian.Uint64(text)}).secondBit() == 0 {
				unsigned++
			}
		})
		if err != nil {
			return err
		}
	}
	if unsigned > 0 {
		return fmt.Errorf("%d terms of titles are not in the signatures of their issues", unsigned)
	}
	return nil
}

// counts reports whether readers use the rows of a doc in a segment.
func (c *searchCheck) counts(s *storage.Segment, doc storage.Doc) bool {
	return !c.changed[doc] && s.Age >= c.ages[doc]
}
