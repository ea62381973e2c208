package tracker

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

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
var SimilarIssues = NewQuery[SimilarIssuesIn, SimilarList]("SimilarIssues", "List similar issues", Needs{Read, "issues"}, similarIssues, OneMoment)

const (
	// BM25's parameters, as everyone sets them (Robertson, Zaragoza 2009).
	bm25K1 = 1.2
	bm25B  = 0.75
	// similarRead bounds the words of the issue that are looked at, title first.
	similarRead = 256
	// similarWords bounds the words of the issue that are searched for: its rarest.
	similarWords = 64
	// similarPostings bounds the postings gone through, those of a word as well as,
	// about, those of all: beyond, the most frequent words are left out, and of a word
	// in so many issues the older ones.
	similarPostings = 100_000
)

func similarIssues(v *View, in *SimilarIssuesIn) (Reply, error) {
	row, err := v.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	if v.Caller.Lane != nil {
		return Reply{Body: append(v.Buf[:0], `{"similar":[]}`...)}, nil // it sees no other issue
	}
	space, _ := similaritySpaces.Get().(*similaritySpace)
	defer space.release()
	s := similarity{v: v, sight: sight{v: v}, self: storage.DocOf(row.Value.id()), space: space}
	if err := s.search(&row.Value); err != nil {
		return Reply{}, fmt.Errorf("search for similar issues: %w", err)
	}
	body, err := s.answer(cmp.Or(in.Limit, 10), v.Buf[:0])
	return Reply{Body: body}, err
}

// similarity ranks the issues of a workspace by their likeness to one. Issues that
// the caller may not see count nowhere: not in the number of issues, not in how
// many have a word, not in their average length. A score would tell of them
// otherwise.
type similarity struct {
	v      *View
	sight  sight
	self   storage.Doc
	space  *similaritySpace
	hidden docSet
	issues float64 // that the caller sees, without drafts and restricted ones
}

// similaritySpace is the memory of a search, of a few megabytes, for the next one.
type similaritySpace struct {
	met    []weighed
	scores scores
}

var similaritySpaces = sync.Pool{New: func() any { return new(similaritySpace) }}

func (s *similaritySpace) release() {
	s.scores.clear()
	similaritySpaces.Put(s)
}

// wanted is a stem to search for: the lists of the words that have it. Size orders
// stems by how many issues have them: it counts blocks for callers from whom nothing
// could be hidden, and postings of issues that the caller sees for others.
type wanted struct {
	lists []storage.Key
	size  int
}

func (s *similarity) search(t *Issue) (err error) {
	if s.hidden.docs, err = s.sight.hiddenDocs(); err != nil {
		return err
	}
	err = s.v.eachState(func(_ tallyKind, _ storage.ID, a amount) { s.issues += float64(a.n) })
	if err != nil {
		return err
	}
	r := wordPostings.Read(s.v)
	defer func() { err = errors.Join(err, r.Close()) }()
	all, err := s.want(r, t)
	if err != nil {
		return err
	}
	met := s.space.met[:0]
	ends := make([]int, 0, len(all)) // of the postings of each stem in met
	for _, w := range all {
		if len(met) > similarPostings {
			break
		}
		if met, err = s.gather(r, w, met); err != nil {
			return err
		}
		ends = append(ends, len(met))
	}
	s.space.met = met
	slow := slownessOf(met)
	begin := 0
	for _, end := range ends {
		s.score(met[begin:end], slow)
		begin = end
	}
	return nil
}

// slowness is, by a posting's length byte, k1*(1-b+b*length/average).
type slowness [math.MaxUint8 + 1]float64

// slownessOf takes as average length that of the issues found, each as often as it
// was found.
func slownessOf(met []weighed) *slowness {
	var s slowness
	total := 0.0
	for b := range s {
		s[b] = lengthOf(byte(b))
	}
	for _, m := range met {
		total += s[m.length]
	}
	average := max(1, total/max(1, float64(len(met))))
	for b := range s {
		s[b] = bm25K1 * (1 - bm25B + bm25B*s[b]/average)
	}
	return &s
}

// want lists the stems of an issue's significant words, the rarest first.
func (s *similarity) want(r *storage.PostingReader, t *Issue) ([]wanted, error) {
	seen := map[string]bool{}
	var stemsOf []string
	add := func(word []byte) {
		if st, stop := stem(word); !stop && !seen[st] && len(seen) < similarRead {
			seen[st] = true
			stemsOf = append(stemsOf, st)
		}
	}
	eachWord(t.Title, add)
	eachWord(text(t.Description), add)
	all := make([]wanted, 0, len(stemsOf))
	for _, st := range stemsOf {
		w := wanted{}
		if own, stop := stem([]byte(st)); !stop && own == st {
			w.lists = append(w.lists, storage.Key(nil).Str(st))
		}
		prefix := storage.Key(nil).Str(st)
		err := s.v.Rows(searchStems, prefix, nil, func(fields, _ []byte) (bool, error) {
			w.lists = append(w.lists, slices.Clone(storage.Key(fields[len(prefix):])))
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		for _, list := range w.lists {
			size, err := s.sizeOf(r, list)
			if err != nil {
				return nil, err
			}
			w.size += size
		}
		if w.size > 0 {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(a.size, b.size) })
	return all[:min(len(all), similarWords)], nil
}

// sizeOf gives the part of a list in wanted.size.
func (s *similarity) sizeOf(r *storage.PostingReader, list storage.Key) (n int, err error) {
	if c := s.v.Caller; c.Level >= Admin && len(c.Hidden) == 0 {
		return r.Blocks(list, searchBlocks)
	}
	err = s.eachSeen(r, list, func(weighed) bool { n++; return n < similarPostings })
	return n, err
}

// weighed is an issue with the weight and length byte of a posting.
type weighed struct {
	doc    storage.Doc
	weight uint16
	length byte
}

// eachSeen goes through the issues of a list that the caller may see, newest first,
// until fn returns false.
func (s *similarity) eachSeen(r *storage.PostingReader, list storage.Key, fn func(weighed) bool) error {
	s.hidden.rewind()
	if err := r.List(list, math.MaxUint64); err != nil {
		return err
	}
	for r.Valid() {
		if p := r.Payload(); p[0] > 0 && !s.hidden.has(r.Doc()) && !fn(weighed{r.Doc(), uint16(p[0]), p[1]}) {
			return nil
		}
		if err := r.Step(); err != nil {
			return err
		}
	}
	return nil
}

// gather appends the issues that have a stem.
func (s *similarity) gather(r *storage.PostingReader, w wanted, met []weighed) ([]weighed, error) {
	begin := len(met)
	for _, list := range w.lists {
		if len(met)-begin == similarPostings {
			break
		}
		err := s.eachSeen(r, list, func(m weighed) bool {
			met = append(met, m)
			return len(met)-begin < similarPostings
		})
		if err != nil {
			return nil, err
		}
	}
	if len(w.lists) < 2 {
		return met, nil
	}
	// An issue with several words of one stem has it as often as all of them.
	of := met[begin:]
	slices.SortFunc(of, func(a, b weighed) int { return compare(uint64(a.doc), uint64(b.doc)) })
	kept := of[:0]
	for _, m := range of {
		if len(kept) > 0 && kept[len(kept)-1].doc == m.doc {
			kept[len(kept)-1].weight += m.weight
			continue
		}
		kept = append(kept, m)
	}
	return met[:begin+len(kept)], nil
}

// score adds a stem's part to the issues that have it.
func (s *similarity) score(met []weighed, slow *slowness) {
	having := float64(len(met))
	rarity := math.Log(1 + (s.issues-min(having, s.issues)+0.5)/(having+0.5))
	for _, m := range met {
		weight := float64(m.weight)
		s.space.scores.add(m.doc, rarity*weight*(bm25K1+1)/(weight+slow[m.length]))
	}
}

// answer appends the best issues.
func (s *similarity) answer(limit int, buf []byte) ([]byte, error) {
	all := s.space.scores.ranked(s.self)
	buf = append(buf, `{"similar":[`...)
	count := 0
	for len(all) > 0 && count < limit {
		// The best few are enough as a rule.
		some := best(all, 4*limit)
		all = all[len(some):]
		for _, one := range some {
			if count == limit {
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
	var key [8]byte
	err = issues.Scan(s.v, storage.DocKey(key[:0], one.doc), nil, func(_ []byte, rec storage.Record) (bool, error) {
		if shown, err = s.v.seesIssue(rec); err != nil || !shown {
			return false, err
		}
		if more {
			buf = append(buf, ',')
		}
		if buf, _, err = s.sight.append(append(buf, `{"issue":`...), rec); err != nil {
			return false, err
		}
		buf = strconv.AppendFloat(append(buf, `,"score":`...), one.score, 'g', -1, 64)
		buf = append(buf, '}')
		return false, nil
	})
	return buf, shown, err
}
