package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchyard/storage"
)

func (w *issueFixture) scores(who *Caller, of IssueID) (told string) {
	w.Helper()
	reply, err := w.ask(who, SimilarIssues, &SimilarIssuesIn{ID: string(of), Limit: 50})
	if err != nil {
		w.Fatal(err)
	}
	for _, one := range decode[SimilarList](w, reply.Body).Similar {
		told += fmt.Sprintf("%s %v\n", one.Issue.ID, one.Score)
	}
	return told
}

// TestSimilarIssues_ScoresTellNothingHidden makes issues that a caller can't see, with a
// word of one that it can, and looks whether the scores give them away.
func TestSimilarIssues_ScoresTellNothingHidden(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	of := w.create(CreateIssueIn{Title: "A parcel for zanzibar"}).ID
	w.create(CreateIssueIn{Title: "Another zanzibar parcel", IssueFields: IssueFields{TeamID: Some(w.web)}})
	w.create(CreateIssueIn{Title: "Nothing of the kind"})
	w.indexAll()
	before, admins := w.scores(&w.gus, of), w.scores(&w.ann, of)
	if before == "" || before != admins {
		t.Fatalf("the guest is told %q, the owner %q", before, admins)
	}
	for i := range 5 {
		w.create(CreateIssueIn{Title: "zanzibar zanzibar", IssueFields: IssueFields{TeamID: Some(w.secret)}})
		restricted := w.create(CreateIssueIn{Title: fmt.Sprintf("Unlike %d", i)}).ID
		w.grant(restricted, "somebody", GranteeUser)
		w.patch(restricted, IssuePatch{Title: Some("A zanzibar of which nobody knows")})
		if i%2 == 0 {
			w.indexAll()
			if now := w.scores(&w.gus, of); now != before {
				t.Fatalf("%d hidden issues change what the guest is told from\n%sto\n%s", 2*i+2, before, now)
			}
		}
	}
	if w.scores(&w.ann, of) == admins {
		t.Error("the owner is told the same, too")
	}
	w.indexAnew()
	if now := w.scores(&w.gus, of); now != before {
		t.Errorf("merged, the guest is told\n%swant\n%s", now, before)
	}
}

// Issues that a grant alone shows are found where they are all that the caller sees.
func TestSimilarIssues_OfGrantedIssuesAlone(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	of := w.create(CreateIssueIn{Title: "A parcel for zanzibar"}).ID
	like := w.create(CreateIssueIn{Title: "Another zanzibar parcel"}).ID
	for _, id := range []IssueID{of, like} {
		w.grant(id, "gus", GranteeUser)
	}
	w.indexAll()
	if told := w.scores(&w.gus, of); !strings.Contains(told, string(like)) {
		t.Errorf("the guest is told %q, want %s", told, like)
	}
}

// manyWords is a text of words of its own.
func manyWords(n, from int) *string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%06d ", from+i)
	}
	s := b.String()
	return &s
}

// TestIndexSearch_SegmentsOfSeveralBatches writes and merges segments that take several
// batches, cuts them off at each, and looks at what is left.
func TestIndexSearch_SegmentsOfSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	n := 0
	fill := func() {
		for range 8 {
			n++
			w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", n), IssueFields: IssueFields{Description: Some(*manyWords(2000, 2000*n))}})
		}
	}
	found := func() {
		t.Helper()
		for _, i := range []int{1, n / 2, n} {
			page := w.list(&w.ann, ListIssuesIn{Limit: 10, IssueFilter: IssueFilter{Search: Some(fmt.Sprintf("word%06d", 2000*i+1999))}})
			if len(page.Issues) != 1 || page.Issues[0].Title != fmt.Sprintf("Parcel %d", i) {
				t.Errorf("a word of parcel %d finds %d issues", i, len(page.Issues))
			}
		}
	}
	cutOff := func(op *Op) (most int) {
		t.Helper()
		for at := 1; ; at++ {
			steps := 0
			err := w.flow(op, func(*Op) error {
				if steps++; steps == at {
					return errCutOff
				}
				return nil
			})
			most = max(most, steps)
			if err == nil {
				return most
			}
			if !errors.Is(err, errCutOff) {
				t.Fatal(err)
			}
			if at%2 == 0 {
				w.buffer.Discard() // as after a change of owner
			}
			if found(); at%3 == 0 {
				w.verify()
			}
		}
	}
	for range 4 {
		fill()
		if steps := cutOff(indexSearchOp); steps < 4 {
			t.Errorf("a segment took %d steps, want more", steps)
		}
	}
	if m := w.manifest(); len(m.Segments) != 4 || !w.due(timerMergeSegments) {
		t.Fatalf("there is nothing to merge: %+v", m)
	}
	if steps := cutOff(mergeSegmentsOp); steps < 8 {
		t.Errorf("a merge took %d steps, want more", steps)
	}
	if m := w.manifest(); len(m.Segments) != 1 || m.Segments[0].Docs != 32 || w.due(timerMergeSegments) || w.due(timerIndexSearch) {
		t.Errorf("not merged: %+v", m)
	}
	w.verify()
	found()
}

// TestIndexSearch_GivesUpWhatAnotherRunHasDone lets two runs of the timer overtake each
// other, as after a change of owner there and back.
func TestIndexSearch_GivesUpWhatAnotherRunHasDone(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.create(CreateIssueIn{Title: "First"}).ID
	w.indexAll()
	w.create(CreateIssueIn{Title: "Second"})
	w.patch(first, IssuePatch{Title: Some("Premier")})
	for _, change := range []func(){
		func() {},
		func() { w.patch(first, IssuePatch{Title: Some("Primero")}) },
	} {
		change()
		err := w.flow(indexSearchOp, func(op *Op) error {
			if op != completeSegmentOp {
				return nil
			}
			return w.flow(indexSearchOp, nil)
		})
		if !errors.Is(err, errGivenUp) {
			t.Errorf("the run that was overtaken ends with %v", err)
		}
		w.verify()
	}
}

// TestIndexSearch_DropsAnEarlierIndex opens a workspace with the rows of an index that
// an earlier version kept.
func TestIndexSearch_DropsAnEarlierIndex(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{Title: "First"})
	w.run(&System, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, errors.Join(tx.Writer().SetValue(earlierSearchFirst, []byte("a"), nil), tx.Writer().SetValue(earlierSearchLast, []byte("b"), nil))
	}), &None{})
	w.verifyFinds("no table, index or row")
	w.indexAll()
	w.verify()
	for table := earlierSearchFirst; table <= earlierSearchLast; table++ {
		v := storage.NewView(w.db, 1, w.workspace)
		if has, err := v.Has(table, nil); err != nil || has {
			t.Errorf("table %d is still there: %v", table, err)
		}
	}
}

// TestPossibleDuplicates_ManyClosed looks among many issues with the same title, all of
// them closed but the oldest.
func TestPossibleDuplicates_ManyClosed(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, w *issueFixture) {
		open := w.create(CreateIssueIn{Title: "The nightly build failed"}).ID
		for range 60 {
			w.create(CreateIssueIn{Title: "The nightly build failed", IssueFields: IssueFields{Status: Some(StatusDone)}})
		}
		w.indexAll()
		for range keptTitles {
			w.create(CreateIssueIn{Title: "Something else altogether", IssueFields: IssueFields{Status: Some(StatusDone)}})
		}
		w.indexAll()
		made := w.create(CreateIssueIn{Title: "The nightly build failed"})
		if len(made.PossibleDuplicates) != 1 || made.PossibleDuplicates[0].ID != open {
			t.Errorf("duplicates %+v", made.PossibleDuplicates)
		}
	})
}

// TestPossibleDuplicates_ManyClosedInANewerSegment has closed issues with the title in the newer of two
// segments, all of them older than the open issue in the other one.
func TestPossibleDuplicates_ManyClosedInANewerSegment(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, w *issueFixture) {
		var closed []IssueID
		for i := range 2 * fewClosed {
			closed = append(closed, w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", i), IssueFields: IssueFields{Status: Some(StatusDone)}}).ID)
		}
		open := w.create(CreateIssueIn{Title: "The nightly build failed"}).ID
		w.indexAll()
		for _, id := range closed {
			w.patch(id, IssuePatch{Title: Some("The nightly build failed")})
		}
		w.indexAll()
		for range keptTitles { // the open issue is not among the recent ones any more
			w.create(CreateIssueIn{Title: "Something else altogether", IssueFields: IssueFields{Status: Some(StatusDone)}})
		}
		w.indexAll()
		if m := w.manifest(); len(m.Segments) != 3 {
			t.Fatalf("segments %+v", m.Segments)
		}
		made := w.create(CreateIssueIn{Title: "The nightly build failed"})
		if len(made.PossibleDuplicates) != 1 || made.PossibleDuplicates[0].ID != open {
			t.Errorf("duplicates %+v", made.PossibleDuplicates)
		}
	})
}

// The signatures of indexed titles follow the changes of the titles.
func TestPossibleDuplicates_OfChangedTitles(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	changed := w.indexedBeforeOthers("Brakes squeal in the tunnel")
	w.patch(changed, IssuePatch{Title: Some("Doors jam at the depot")})
	for range 2 {
		if made := w.create(CreateIssueIn{Title: "Doors jam at the depot"}); len(made.PossibleDuplicates) == 0 || made.PossibleDuplicates[len(made.PossibleDuplicates)-1].ID != changed {
			t.Errorf("duplicates of the new title: %+v", made.PossibleDuplicates)
		}
		if made := w.create(CreateIssueIn{Title: "Brakes squeal in the tunnel", IssueFields: IssueFields{Status: Some(StatusDone)}}); len(made.PossibleDuplicates) != 0 {
			t.Errorf("duplicates of the old title: %+v", made.PossibleDuplicates)
		}
		for i := range 2 * keptTitles { // the changed title is not among the recent ones any more
			w.create(CreateIssueIn{Title: fmt.Sprintf("Seat %d of car %d", i, i+1)})
		}
		w.indexAll()
	}
	if w.tails.Use().Columns == 0 {
		t.Error("the searches read no titles of segments")
	}
}

// An issue counts for the bound of a search by the cost of reading it.
func TestPossibleDuplicates_LongIssuesCountMore(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	words := strings.Repeat("words ", 160) // 960 bytes
	for _, row := range []struct {
		in   CreateIssueIn
		want int
	}{
		{CreateIssueIn{Title: "The nightly build failed", IssueFields: IssueFields{Description: Some(strings.Repeat("x", 1000))}}, 0},
		{CreateIssueIn{Title: words}, 9},
		{CreateIssueIn{Title: "Long", IssueFields: IssueFields{Description: Some(strings.Repeat("x", 200<<10))}}, 112},
		{CreateIssueIn{Title: words, IssueFields: IssueFields{Description: Some(strings.Repeat("x", 200<<10))}}, 121},
		// These are read and not decoded. If they counted as much, they would hide other issues; if they did not
		// count, a creation might read gigabytes of them.
		{CreateIssueIn{Title: words, IssueFields: IssueFields{IsDraft: Some(true), Description: Some(strings.Repeat("x", 200<<10))}}, 12},
		{CreateIssueIn{Title: words, IssueFields: IssueFields{Status: Some(StatusDone), Description: Some(strings.Repeat("x", 200<<10))}}, 12},
	} {
		id, _ := storage.ParseID(w.create(row.in).ID)
		w.run(&w.ann, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			d := duplicates{tx: tx, terms: 1}
			if _, err := d.compare(storage.DocOf(id), titleTerms("Other")); err != nil {
				return Reply{}, err
			}
			if d.compared != row.want {
				t.Errorf("%.20s counts %d more, want %d", row.in.Title, d.compared, row.want)
			}
			return Reply{}, d.rows.Close()
		}), &None{})
	}
}

// TestCheckSearch_FindsWhatIsWrong spoils the index in each of its parts.
func TestCheckSearch_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		harm func(w *issueFixture, tx *Tx, m *storage.Manifest) error
		want string
	}{
		"a segment is lost": {func(_ *issueFixture, tx *Tx, m *storage.Manifest) error {
			m.Segments = nil
			return tx.setManifest(m)
		}, "belongs to no segment"},
		"an issue is taken for a newer one": {func(_ *issueFixture, tx *Tx, m *storage.Manifest) error {
			m.Through--
			return tx.setManifest(m)
		}, "or for others"},
		"a change was not noted": {func(w *issueFixture, tx *Tx, _ *storage.Manifest) error {
			return tx.Writer().DeleteRows(searchChanged, nil)
		}, "or for others"},
		"the timer is gone": {func(_ *issueFixture, tx *Tx, _ *storage.Manifest) error {
			return tx.ClearTimer(timerIndexSearch, "")
		}, "is not set"},
		"a signature lacks a term": {func(_ *issueFixture, tx *Tx, m *storage.Manifest) error {
			return tx.Writer().SetValue(searchSegments, signaturesOf(m.Segments[0].Number), make([]byte, 8*m.Segments[0].Docs))
		}, "are not in the signatures"},
		"the totals are wrong": {func(_ *issueFixture, tx *Tx, m *storage.Manifest) error {
			m.Segments[0].Length++
			return tx.setManifest(m)
		}, "the manifest says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			id := w.create(CreateIssueIn{Title: "First"}).ID
			w.create(CreateIssueIn{Title: "Newest"})
			w.indexAll()
			w.patch(id, IssuePatch{Title: Some("Second")})
			for range indexFew {
				w.create(CreateIssueIn{Title: "Newer"})
			}
			w.run(&System, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				m, err := tx.manifest()
				if err != nil {
					return Reply{}, err
				}
				return Reply{}, row.harm(w, tx, &m)
			}), &None{})
			w.verifyFinds(row.want)
		})
	}
}

// So many issues are changed that everything is merged for it, once.
func TestMergeSegments_OnceForManyReplacedIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var all []IssueID
	for i := range 700 {
		all = append(all, w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", i)}).ID)
	}
	w.indexAll()
	for i, id := range all[:600] {
		w.patch(id, IssuePatch{Title: Some(fmt.Sprintf("Letter %d", i))})
	}
	if err := w.flow(indexSearchOp, nil); err != nil {
		t.Fatal(err)
	}
	merges := 0
	err := w.flow(mergeSegmentsOp, func(op *Op) error {
		if op == completeMergeOp {
			if merges++; merges > 2 {
				return errCutOff
			}
		}
		return nil
	})
	if m := w.manifest(); err != nil || merges != 1 || m.Replaced != 0 || m.Settled != 0 || w.due(timerMergeSegments) {
		t.Errorf("%d merges, %v: %+v", merges, err, m)
	}
	w.verify()
}

// A merge reads all rows of segments that are of no use afterwards. It leaves the cache to the rows that searches read.
func TestMergeSegments_LeavesTheCacheToSearches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for segment := range 4 {
		for i := range 8 {
			w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", 8*segment+i)})
		}
		if err := w.flow(indexSearchOp, nil); err != nil {
			t.Fatal(err)
		}
	}
	search := func() {
		if page := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{Search: Some("parcel")}, Limit: 50}); len(page.Issues) != 32 {
			t.Errorf("%d issues are found, want 32", len(page.Issues))
		}
	}
	search()
	before := w.segments.Use()
	if err := w.flow(mergeSegmentsOp, nil); err != nil {
		t.Fatal(err)
	}
	if m := w.manifest(); len(m.Segments) != 1 {
		t.Fatalf("not merged: %+v", m)
	}
	if after := w.segments.Use(); before.Bytes == 0 || after != before {
		t.Errorf("the cache is %+v after a merge, and was %+v", after, before)
	}
	search()
}

// A segment is completed between the last two steps of a merge.
func TestSettleReplaced_CountsWhatIsReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	id := w.create(CreateIssueIn{Title: "Parcel"}).ID
	w.create(CreateIssueIn{Title: "Newest"})
	w.indexAll()
	err := w.flow(mergeSegmentsOp, func(op *Op) error {
		if op != removeSettledOp {
			return nil
		}
		w.patch(id, IssuePatch{Title: Some("Letter")})
		return w.flow(indexSearchOp, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if page := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{Search: Some("parcel")}}); len(page.Issues) != 0 {
		t.Errorf("a word that no issue has any more finds %d", len(page.Issues))
	}
	w.verify()
}
