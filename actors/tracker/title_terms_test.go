package tracker

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/storage"
)

// Columns of a segment of less than 512 issues.
func signaturesOf(segment uint32) []byte {
	return append(storage.SegmentPrefix(segment), 0xf6, 0, 0, 0, 0)
}
func termsOf(segment uint32) []byte { return append(storage.SegmentPrefix(segment), 0xf7, 0, 0, 0, 0) }

// eachSegment changes the rows of all segments of the index.
func (w *issueFixture) eachSegment(change func(tx *Tx, s *storage.Segment) error) {
	w.Helper()
	w.run(&System, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		m, err := tx.manifest()
		for i := range m.Segments {
			if err == nil {
				err = change(tx, &m.Segments[i])
			}
		}
		return Reply{}, err
	}), &None{})
}

// indexedBeforeOthers makes an issue with a title and enough others for it not to be among the recent ones, and indexes
// all of them.
func (w *issueFixture) indexedBeforeOthers(title string) IssueID {
	w.Helper()
	id := w.create(CreateIssueIn{Title: title}).ID
	for i := range 2 * keptTitles {
		w.create(CreateIssueIn{Title: fmt.Sprintf("Lamp %d of platform %d", i, i+1)})
	}
	w.indexAll()
	return id
}

func onlyDuplicate(t *testing.T, made CreatedIssue, want IssueID) {
	t.Helper()
	if len(made.PossibleDuplicates) != 1 || made.PossibleDuplicates[0].ID != want {
		t.Errorf("duplicates %+v, want %s alone", made.PossibleDuplicates, want)
	}
}

// closedBrakes makes an issue that is no duplicate of later ones.
func (w *issueFixture) closedBrakes() CreatedIssue {
	w.Helper()
	return w.create(CreateIssueIn{Title: "Brakes squeal in the tunnel", IssueFields: IssueFields{Status: Some(StatusDone)}})
}

// An issue is looked at only where the column says that it has terms of the new title. Where there is no memory for
// that column, the second signature says so.
func TestTitleTerms_LeaveIssuesOut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		key    func(segment uint32) []byte
		bytes  int
		tails  *Tails
		report string
	}{
		"terms":      {termsOf, 32, NewTails(1 << 20), "the terms of the documents are not those of the postings"},
		"signatures": {signaturesOf, 8, NewTails(0), "are not in the signatures of their issues"},
	} {
		w := newIssueFixture(t)
		w.buffer.Remember(row.tails)
		w.indexedBeforeOthers("Brakes squeal in the tunnel")
		w.eachSegment(func(tx *Tx, s *storage.Segment) error {
			return tx.Writer().SetValue(searchSegments, row.key(s.Number), make([]byte, row.bytes*int(s.Docs)))
		})
		if made := w.closedBrakes(); len(made.PossibleDuplicates) != 0 {
			t.Errorf("%s: duplicates %+v though none has a term", name, made.PossibleDuplicates)
		}
		w.verifyFinds(row.report)
	}
}

// Segments of earlier versions have no terms of their issues, or no signatures either. Searches find the same, and
// merges give them both.
func TestTitleTerms_OfEarlierSegments(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	for _, key := range []func(uint32) []byte{termsOf, signaturesOf} {
		w.eachSegment(func(tx *Tx, s *storage.Segment) error {
			return tx.Writer().DeleteValue(searchSegments, key(s.Number))
		})
		w.buffer.Discard()
		for range 2 {
			onlyDuplicate(t, w.closedBrakes(), first)
		}
		w.verify()
	}
	before := w.manifest().Segments
	for i := 0; slices.ContainsFunc(w.manifest().Segments, func(s storage.Segment) bool { return s.Number == before[0].Number }); i++ {
		w.indexedBeforeOthers(fmt.Sprintf("Seat %d", i))
	}
	w.eachSegment(func(tx *Tx, s *storage.Segment) error {
		if value, err := tx.Value(searchSegments, termsOf(s.Number), nil); err != nil || len(value) != 32*int(min(s.Docs, 512)) {
			t.Errorf("segment %d of %d issues has %d bytes of terms, %v", s.Number, s.Docs, len(value), err)
		}
		return nil
	})
	onlyDuplicate(t, w.closedBrakes(), first)
	w.verify()
}

// Kept columns of titles take no more memory than a node has for them, and are given back. Searches without room
// find the same.
func TestTitleTerms_AreBounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	onlyDuplicate(t, w.closedBrakes(), first)
	used := w.tails.Use().Columns
	if used == 0 {
		t.Error("nothing is kept")
	}
	onlyDuplicate(t, w.closedBrakes(), first)
	if again := w.tails.Use().Columns; again != used {
		t.Errorf("%d bytes are kept after the same search, %d before it", again, used)
	}
	segments := w.manifest().Segments
	for i := 0; slices.ContainsFunc(w.manifest().Segments, func(s storage.Segment) bool { return s.Number == segments[0].Number }); i++ {
		w.indexedBeforeOthers(fmt.Sprintf("Seat %d", i))
	}
	if now := w.tails.Use().Columns; now != 0 {
		t.Errorf("%d bytes are kept of segments that were merged", now)
	}
	onlyDuplicate(t, w.closedBrakes(), first)
	w.buffer.Discard()
	if now := w.tails.Use().Columns; now != 0 {
		t.Errorf("%d bytes are kept of a workspace that was forgotten", now)
	}
	if w.tails.reserveColumns(8*w.tails.most+1) || !w.tails.reserveColumns(8*w.tails.most) {
		t.Fatal("there is too much room, or too little")
	}
	for range 2 {
		onlyDuplicate(t, w.closedBrakes(), first)
	}
	if now := w.tails.Use().Columns; now != 8*w.tails.most {
		t.Errorf("%d bytes are used, of at most %d", now, 8*w.tails.most)
	}
}

// Blocks of the lists of terms take no more memory than a node has for them, and are given back. Searches without room
// for them find the same.
func TestTitleLists_AreBounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	w.eachSegment(func(tx *Tx, s *storage.Segment) error {
		return tx.Writer().DeleteValue(searchSegments, termsOf(s.Number))
	})
	onlyDuplicate(t, w.closedBrakes(), first)
	used := w.tails.Use().Terms
	if used == 0 {
		t.Error("no block is kept")
	}
	onlyDuplicate(t, w.closedBrakes(), first)
	if again := w.tails.Use().Terms; again != used {
		t.Errorf("%d bytes are kept after the same search, %d before it", again, used)
	}
	w.buffer.Discard()
	if now := w.tails.Use().Terms; now != 0 {
		t.Errorf("%d bytes are kept of a workspace that was forgotten", now)
	}
	if w.tails.reserveTerms(3*w.tails.most + 1) {
		t.Error("lists may take more than their part of the memory")
	}
	if !w.tails.reserveTerms(3*w.tails.most) || w.tails.reserveColumns(5*w.tails.most+1) || !w.tails.reserveColumns(5*w.tails.most) {
		t.Fatal("columns have no room of their own, or too much")
	}
	for range 2 {
		onlyDuplicate(t, w.closedBrakes(), first)
	}
	if now := w.tails.Use().Terms; now != 3*w.tails.most {
		t.Errorf("%d bytes are used, of at most %d", now, 3*w.tails.most)
	}
}
