package tracker

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"switchyard/storage"
)

// signatureKey is the key of the first block of a segment's signatures.
func signatureKey(segment uint32) []byte {
	return append(storage.SegmentPrefix(segment), 0xf6, 0, 0, 0, 0)
}

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

// An issue whose second signature lacks the terms of a new title is not looked at.
func TestTitleSignatures_LeaveIssuesOut(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.indexedBeforeOthers("Brakes squeal in the tunnel")
	w.eachSegment(func(tx *Tx, s *storage.Segment) error {
		return tx.Writer().SetValue(searchSegments, signatureKey(s.Number), make([]byte, 8*s.Docs))
	})
	if made := w.create(CreateIssueIn{Title: "Brakes squeal in the tunnel"}); len(made.PossibleDuplicates) != 0 {
		t.Errorf("duplicates %+v though no signature has a term", made.PossibleDuplicates)
	}
	w.verifyFinds("are not in the signatures of their issues")
}

// Segments of earlier versions have no signatures. Those of issues that were read are kept in memory, and
// merges take the others for unknown.
func TestTitleSignatures_OfEarlierSegments(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	w.eachSegment(func(tx *Tx, s *storage.Segment) error {
		return tx.Writer().DeleteValue(searchSegments, signatureKey(s.Number))
	})
	closed := CreateIssueIn{Title: "Brakes squeal in the tunnel", IssueFields: IssueFields{Status: Some(StatusDone)}}
	for range 2 {
		onlyDuplicate(t, w.create(closed), first)
	}
	learned := 0
	for _, blocks := range w.buffer.recent.signatures.blocks {
		for _, b := range blocks {
			for ; len(b) > 0; b = b[8:] {
				if !bytes.Equal(b[:8], bytes.Repeat([]byte{0xff}, 8)) {
					learned++
				}
			}
		}
	}
	if learned == 0 {
		t.Error("nothing was learned from the issue that was read")
	}
	w.verify()
	for range 8 {
		for i := range 2 * keptTitles {
			w.create(CreateIssueIn{Title: fmt.Sprintf("Seat %d of car %d", i, i+1)})
		}
		w.indexAll()
	}
	onlyDuplicate(t, w.create(closed), first)
	w.verify()
}

// Signatures take no more memory than a node has for them, and give it back.
func TestTitleSignatures_AreBounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	closed := CreateIssueIn{Title: "Brakes squeal in the tunnel", IssueFields: IssueFields{Status: Some(StatusDone)}}
	onlyDuplicate(t, w.create(closed), first)
	if used := w.tails.Use().Signatures; used == 0 {
		t.Error("no signature is kept")
	}
	w.buffer.Discard()
	if used := w.tails.Use().Signatures; used != 0 {
		t.Errorf("%d bytes are kept of a workspace that was forgotten", used)
	}
	if !w.tails.reserveSignatures(4 * w.tails.most) {
		t.Fatal("there is no room")
	}
	for range 2 {
		onlyDuplicate(t, w.create(closed), first)
	}
	if used := w.tails.Use().Signatures; used != 4*w.tails.most {
		t.Errorf("%d bytes are used, of at most %d", used, 4*w.tails.most)
	}
}

// Blocks of the lists of terms take no more memory than a node has for them, are given back with their segments,
// and searches without room for them find the same.
func TestTitleTerms_AreBounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	closed := CreateIssueIn{Title: "Brakes squeal in the tunnel", IssueFields: IssueFields{Status: Some(StatusDone)}}
	onlyDuplicate(t, w.create(closed), first)
	used := w.tails.Use().Terms
	if used == 0 {
		t.Error("no block is kept")
	}
	onlyDuplicate(t, w.create(closed), first)
	if again := w.tails.Use().Terms; again != used {
		t.Errorf("%d bytes are kept after the same search, %d before it", again, used)
	}
	segments := w.manifest().Segments
	for i := 0; slices.ContainsFunc(w.manifest().Segments, func(s storage.Segment) bool { return s.Number == segments[0].Number }); i++ {
		w.indexedBeforeOthers(fmt.Sprintf("Seat %d", i))
	}
	if now := w.tails.Use().Terms; now != 0 {
		t.Errorf("%d bytes are kept of segments that were merged", now)
	}
	onlyDuplicate(t, w.create(closed), first)
	w.buffer.Discard()
	if now := w.tails.Use().Terms; now != 0 {
		t.Errorf("%d bytes are kept of a workspace that was forgotten", now)
	}
	if w.tails.reserveTerms(3*w.tails.most + 1) {
		t.Error("terms may take more than three quarters of the memory")
	}
	if !w.tails.reserveTerms(3*w.tails.most) || w.tails.reserveSignatures(w.tails.most+1) || !w.tails.reserveSignatures(w.tails.most) {
		t.Fatal("signatures have no room of their own, or too much")
	}
	for range 2 {
		onlyDuplicate(t, w.create(closed), first)
	}
	if now := w.tails.Use().Terms; now != 3*w.tails.most {
		t.Errorf("%d bytes are used, of at most %d", now, 3*w.tails.most)
	}
}
