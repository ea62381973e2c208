package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// similarTailMost bounds the issues of a tail that a search for similar issues goes
// through, the newest first. Tails are shorter, but where segments can't be made.
const similarTailMost = 4 * indexMany

const (
	// similarTailText bounds the bytes of these issues' texts, and those of issues that were changed.
	similarTailText = 16 << 20
	// similarTailHidden bounds the bytes of issues that the caller may not see. They are read and passed over.
	similarTailHidden = 8 * similarTailText
)

// tailRoom is how much of a tail a search may still read, in bytes: texts, and issues that the caller may not see.
type tailRoom struct{ text, hidden int }

func (r tailRoom) isUsedUp() bool { return r.text < 0 || r.hidden < 0 }

// tailIssue is an issue of the tail that the caller may see, or some issue like it.
type tailIssue struct {
	doc storage.Doc
	// visible: the issue is of a class that the caller sees as a whole.
	visible bool
	words   *issueWords
}

// tailPosting is a stem in an issue of the tail, by its place there.
type tailPosting struct {
	at     int
	weight byte
}

// readTail reads the issues that the segments lack or hold wrongly.
func (s *similarity) readTail(partial bool) error {
	words := s.v.tails.workspace(s.v.Workspace())
	defer s.v.tails.trim(words)
	room := s.room
	add := func(rec storage.Record) error {
		id, err := storedID(rec)
		if err != nil {
			return err
		}
		one := tailIssue{doc: storage.DocOf(id), visible: true}
		if partial {
			if !s.v.Caller.CanViewTeam(rec.Team()) {
				room.hidden -= len(rec.JSON())
				return nil
			}
			one.visible = rec.Flags()&issueRestricted == 0
		}
		if one.words, err = words.find(s.v, one.doc, rec); err == nil {
			room.text -= one.words.text
			s.tail = append(s.tail, one)
		}
		return err
	}
	err := s.v.Rows(issueTable, nil, nil, func(fields, value []byte) (bool, error) {
		if len(s.tail) >= similarTailMost || room.isUsedUp() || len(fields) < 8 || storage.DocOfKey(fields) <= s.manifest.Through {
			return false, nil
		}
		rec, err := storage.ParseRecord(value)
		if err == nil {
			err = add(rec)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the newest issues: %w", err)
	}
	room = s.room
	err = s.v.eachChanged(func(id storage.ID, _ uint64) (bool, error) {
		doc := storage.DocOf(id)
		if doc > s.manifest.Through {
			return false, nil // these are among the newest
		}
		s.changed = append(s.changed, doc)
		if len(s.tail) >= 2*similarTailMost || room.isUsedUp() {
			return true, nil
		}
		_, err := issues.Record(s.v, issueKey(id), add)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the changed issues: %w", err)
	}
	words.trim(s.tail)
	return nil
}

// isChanged reports whether the segments hold an issue wrongly.
func (s *similarity) isChanged(doc storage.Doc) bool {
	_, is := slices.BinarySearch(s.changed, doc)
	return is
}

// wantInTail finds the stems in the tail.
func (s *similarity) wantInTail(all []wanted) {
	if len(s.tail) == 0 {
		return
	}
	// Hashes of the stems by their upper bits: at most a quarter of the places are taken.
	var places [4 * similarRead]byte
	for i := range all {
		at := all[i].hash >> 56
		for places[at] != 0 {
			at = (at + 1) % uint64(len(places))
		}
		places[at] = byte(i + 1)
	}
	for i := range s.tail {
		one := &s.tail[i]
		for j, hash := range one.words.stems {
			for at := hash >> 56; places[at] != 0; at = (at + 1) % uint64(len(places)) {
				w := &all[places[at]-1]
				if w.hash != hash {
					continue
				}
				w.tail = append(w.tail, tailPosting{i, one.words.weights[j]})
				if one.visible {
					w.visible++
				}
				break
			}
		}
	}
}

// scoreTail sums up the scores of the issues of the tail that have some of the stems.
func (s *similarity) scoreTail(all []wanted, rarities []float64) {
	sums := &s.space.scores
	for i := range all {
		if len(all[i].tail) == 0 {
			continue
		}
		sums.begin()
		for _, p := range all[i].tail {
			weight := float64(p.weight)
			sums.add(uint32(p.at), rarities[i]*weight*(bm25K1+1)/(weight+s.slowness[s.tail[p.at].words.length]))
		}
		sums.end()
	}
	sums.sum(len(s.segments))
}
