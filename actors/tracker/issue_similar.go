package tracker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"switchyard/storage"
)

// SimilarIssuesIn names an issue, and how many like it are wanted.
type SimilarIssuesIn struct {
	ID    string `path:"id"`
	Limit int    `query:"limit" rules:"min=1,max=50" default:"10"`
}

// SimilarIssue is an issue that is like another. Score is above 0; it orders the
// answer, best first, and means nothing beyond it.
type SimilarIssue struct {
	Issue Issue   `json:"issue"`
	Score float64 `json:"score"`
}

// SimilarList is the answer to SimilarIssues.
type SimilarList struct {
	Similar []SimilarIssue `json:"similar"`
}

// SimilarIssues lists the issues most like one, by the words they share (Decision
// 20).
var SimilarIssues = NewQuery[SimilarIssuesIn, SimilarList]("SimilarIssues", "List similar issues", Needs{Read, "issues"}, similarIssues, FromSnapshot, TakesATurn)

const (
	// BM25's parameters, as everyone sets them (Robertson, Zaragoza 2009).
	bm25K1 = 1.2
	bm25B  = 0.75
	// similarRead bounds the words of the issue that are looked up, title first.
	similarRead = 64
	// similarPostings bounds the postings that are gone through: beyond, the most
	// frequent words are left out, but never the similarWords rarest.
	similarPostings = 16_000
	similarWords    = 3
)

func similarIssues(v *View, in *SimilarIssuesIn) (Reply, error) {
	return similarWithin(v, in, tailRoom{similarTailText, similarTailHidden})
}

func similarWithin(v *View, in *SimilarIssuesIn, room tailRoom) (Reply, error) {
	row, err := v.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	space, _ := similaritySpaces.Get().(*similaritySpace)
	defer space.release()
	s := similarity{v: v, visibility: visibility{v: v}, self: storage.DocOf(row.Value.id()), space: space, room: room}
	if err := s.search(&row.Value); err != nil {
		return Reply{}, errors.Join(fmt.Errorf("search for similar issues: %w", err), s.close())
	}
	body, err := s.answer(cmp.Or(in.Limit, 10), v.Buf[:0])
	return Reply{Body: body}, errors.Join(err, s.close())
}

// similarity ranks the issues of a workspace by their likeness to one.
type similarity struct {
	v          *View
	visibility visibility
	self       storage.Doc
	space      *similaritySpace
	manifest   storage.Manifest
	segments   []similarSegment
	reader     *storage.SegmentReader
	room       tailRoom
	tail       []tailIssue   // that the segments lack or hold wrongly
	changed    []storage.Doc // that the segments hold wrongly, the oldest first
	issues     float64       // that the caller sees
	// slowness is, by a posting's length byte, k1*(1-b+b*length/average).
	slowness [math.MaxUint8 + 1]float64
}

// similarSegment is a segment as a search for similar issues needs it.
type similarSegment struct {
	*storage.Segment
	// visible says which classes the caller sees as a whole; nil: all.
	visible []bool
	// hidden says which classes the caller sees nothing of, and classes the class of each
	// issue, in two bytes; nil where there is no such class.
	hidden  []bool
	classes []byte
	lengths []byte
	docs    *storage.DocColumn
}

func (s *similarity) close() (err error) {
	if s.reader != nil {
		err = s.reader.Close()
	}
	return err
}

// wanted is a stem to search for.
type wanted struct {
	hash    uint64
	place   int // of its lists, see similaritySpace
	lists   int // segments that have it
	tail    []tailPosting
	visible int // postings of issues that the caller sees
}

func (s *similarity) search(t *Issue) (err error) {
	if s.v.Caller.Lane != nil {
		return nil // sees its own issue, and no other
	}
	if s.manifest, err = s.v.manifest(); err != nil {
		return err
	}
	if s.reader, err = searchIndex.Reader(s.v); err != nil {
		return err
	}
	s.reader.Use(&s.space.lists)
	if err := s.measure(); err != nil {
		return err
	}
	all, err := s.want(t)
	if err != nil {
		return err
	}
	postings, some := 0, 0
	for _, w := range all {
		if postings += w.visible; postings > similarPostings && some >= similarWords {
			break
		}
		some++
	}
	return s.score(all[:some])
}

// measure adds up how many issues there are and how long they are: only those that the
// caller sees, for the scores tell it.
func (s *similarity) measure() error {
	partial, err := s.visibility.partial()
	if err != nil {
		return err
	}
	if err := s.readTail(partial); err != nil {
		return err
	}
	issues, length := uint64(0), uint64(0)
	for i := range s.tail {
		if one := &s.tail[i]; one.visible {
			issues, length = issues+1, length+searchIndex.Measure(one.words.length)
		}
	}
	for i := range s.manifest.Segments {
		of := similarSegment{Segment: &s.manifest.Segments[i]}
		if !partial {
			issues, length = issues+uint64(of.Docs), length+of.Length
		} else {
			classes, err := s.reader.Classes(of.Number)
			if err != nil {
				return err
			}
			of.visible = make([]bool, len(classes))
			for i, c := range classes {
				sees := s.v.Caller.CanViewTeam(c.Group)
				if of.visible[i] = sees && !c.Restricted; of.visible[i] {
					issues, length = issues+c.Docs, length+c.Length
				}
				if !sees && of.hidden == nil {
					of.hidden = make([]bool, len(classes))
				}
				if !sees {
					of.hidden[i] = true
				}
			}
		}
		s.segments = append(s.segments, of)
	}
	s.issues = float64(issues)
	average := max(1, float64(length)/max(1, s.issues))
	for b := range s.slowness {
		s.slowness[b] = bm25K1 * (1 - bm25B + bm25B*lengthOf(byte(b))/average)
	}
	return nil
}

// countVisible counts the postings of issues that the caller sees.
func (of *similarSegment) countVisible(l *storage.PostingList) (n int) {
	switch {
	case of.visible == nil:
		return l.Total
	case len(l.Counts) == 0: // all are of one class
		if of.visible[0] {
			n = l.Total
		}
		return n
	}
	for _, c := range l.Counts {
		if int(c.Class) < len(of.visible) && of.visible[c.Class] {
			n += int(c.Count)
		}
	}
	return n
}

// hides reports whether an issue is of a class that the caller sees nothing of.
func (of *similarSegment) hides(ord uint32) bool {
	class := int(binary.BigEndian.Uint16(of.classes[2*ord:]))
	return class < len(of.hidden) && of.hidden[class]
}

// want lists the stems of an issue's significant words, the rarest first.
func (s *similarity) want(t *Issue) ([]wanted, error) {
	stems := make([]string, 0, similarRead)
	seen := make(map[string]bool, similarRead)
	add := func(word []byte) {
		if len(stems) == similarRead {
			return
		}
		if forms := formsOf(word); !forms.stop && !seen[string(forms.stem)] {
			stem := string(forms.stem)
			seen[stem] = true
			stems = append(stems, stem)
		}
	}
	for _, text := range [...]string{t.Title, text(t.Description)} {
		err := s.v.eachPiece(text, func(piece string) bool {
			eachWord(piece, add)
			return len(stems) < similarRead
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(stems) // so that the look-ups read each segment in one direction
	all := make([]wanted, len(stems))
	for i, st := range stems {
		all[i].hash, all[i].place = termOf(st).hash, i
	}
	s.wantInTail(all)
	s.space.forLists(len(stems), len(s.segments))
	var key storage.Key
	for i := range s.segments {
		of := &s.segments[i]
		for j, st := range stems {
			key = wordKey(key[:0], []byte(st))
			l, err := s.reader.List(of.Number, stemTerms, key)
			if err != nil {
				return nil, err
			}
			if l != nil {
				s.space.found[i][j] = l
				all[j].lists++
				all[j].visible += of.countVisible(l)
			}
		}
	}
	all = slices.DeleteFunc(all, func(w wanted) bool { return w.lists == 0 && len(w.tail) == 0 })
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(a.visible, b.visible) })
	return all, nil
}

// doc gives the issue of a place; 0 for one of which another segment or the tail counts.
func (s *similarity) doc(place storage.Doc) (storage.Doc, error) {
	segment := int(place>>32) - 1
	if segment == len(s.segments) {
		return s.tail[^uint32(place)].doc, nil
	}
	of := &s.segments[segment]
	if of.docs == nil {
		of.docs = s.reader.DocColumn(of.Segment)
	}
	doc, err := of.docs.Doc(^uint32(place))
	if err == nil && s.isChanged(doc) {
		doc = 0
	}
	if err != nil || doc == 0 || s.manifest.Replaced == 0 {
		return doc, err
	}
	value, err := s.v.Value(searchReplaced, replacedKey(nil, doc), nil)
	if err != nil || value == nil {
		return doc, err
	}
	_, age, err := parseReplaced(replacedKey(nil, doc), value)
	if of.Age < age {
		doc = 0
	}
	return doc, err
}

// answer appends the best issues that the caller may see. It ends early rather than exceed
// the bytes that a node may hold for a workspace: it has no pages.
func (s *similarity) answer(limit int, buf []byte) ([]byte, error) {
	all := s.space.scores.all
	buf = append(buf, `{"similar":[`...)
	count := 0
	for len(all) > 0 && count < limit && len(buf) <= maxWholeBytes {
		// The best few are enough as a rule.
		some := best(all, 4*limit)
		all = all[len(some):]
		for _, one := range some {
			if count == limit || len(buf) > maxWholeBytes {
				break
			}
			var shown bool
			var err error
			if buf, shown, err = s.show(buf, one, count > 0); err != nil {
				return nil, err
			}
			if shown {
				count++
			}
		}
	}
	return append(buf, `]}`...), nil
}

// best moves the n best to the front of all, in order, and returns them.
func best(all []ranked, n int) []ranked {
	order := func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.doc, a.doc)) }
	if len(all) <= n {
		slices.SortFunc(all, order)
		return all
	}
	slices.SortFunc(all[:n], order)
	for i := n; i < len(all); i++ {
		if order(all[i], all[n-1]) >= 0 {
			continue
		}
		one := all[i]
		all[i] = all[n-1]
		at, _ := slices.BinarySearchFunc(all[:n-1], one, order)
		copy(all[at+1:n], all[at:n-1])
		all[at] = one
	}
	return all[:n]
}

// show appends an issue to the answer, unless the caller may not see it or it was
// deleted since it was indexed.
func (s *similarity) show(buf []byte, one ranked, more bool) (_ []byte, shown bool, err error) {
	doc, err := s.doc(one.doc)
	if err != nil || doc == 0 || doc == s.self {
		return buf, false, err
	}
	var key [8]byte
	err = issues.Scan(s.v, storage.DocKey(key[:0], doc), nil, func(_ []byte, rec storage.Record) (bool, error) {
		if rec.Flags()&issueArchived != 0 {
			return false, nil
		}
		if shown, err = s.v.canViewIssue(rec); err != nil || !shown {
			return false, err
		}
		if more {
			buf = append(buf, ',')
		}
		if buf, _, err = s.visibility.append(append(buf, `{"issue":`...), rec); err != nil {
			return false, err
		}
		buf = strconv.AppendFloat(append(buf, `,"score":`...), one.score, 'g', -1, 64)
		buf = append(buf, '}')
		return false, nil
	})
	return buf, shown, err
}
