package tracker

import (
	"errors"
	"strings"
	"testing"
)

// TestIndexLater_MuchText has no tail with much text wait, however few and short its issues are, since searches for
// similar issues read only some text of a tail.
func TestIndexLater_MuchText(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew, w.buffer.indexText = indexFew, 1000
	of400 := CreateIssueIn{IssueFields: IssueFields{Description: Some(strings.Repeat("a", 400))}}
	for range 2 {
		w.create(of400)
	}
	one := w.create(CreateIssueIn{Title: "One"}).ID
	for range 5 { // an issue that is changed often has one text
		w.patch(one, IssuePatch{IssueFields: IssueFields{Description: Some(strings.Repeat("b", 100))}})
		w.patch(one, IssuePatch{IssueFields: IssueFields{Description: Some("c")}})
	}
	failure := errors.New("refused")
	refused := NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, errors.Join(tx.indexAgain(&Issue{ID: one, Title: strings.Repeat("d", 5000)}), failure)
	})
	if _, _, err := w.try(&w.ann, refused, &None{}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if w.due(timerIndexSearch) {
		t.Fatalf("%d bytes of text are indexed", w.buffer.recent.text)
	}
	w.create(of400)
	if due := w.dueAt(timerIndexSearch); due.IsZero() || due.After(w.now) {
		t.Fatalf("%d bytes of text are indexed at %v, it is %v", w.buffer.recent.text, due, w.now)
	}

	// So it is with what comes while the segment is made.
	if err := w.flow(indexSearchOp, func(op *Op) error {
		if op == completeSegmentOp {
			for range 3 {
				w.create(of400)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if due := w.dueAt(timerIndexSearch); due.IsZero() || due.After(w.now) {
		t.Fatalf("%d bytes of text are indexed at %v, it is %v", w.buffer.recent.text, due, w.now)
	}
	w.indexAll()
	if left := w.buffer.recent.text; left != 0 {
		t.Errorf("nothing is to be indexed, and %d bytes of text are", left)
	}

	for range 2 {
		w.create(of400)
	}
	before := w.buffer.recent.text
	w.buffer.Discard()
	w.create(CreateIssueIn{Title: "One more"})
	if after := w.buffer.recent.text; after < before {
		t.Errorf("%d bytes of text are to be indexed, before a restart %d", after, before)
	}
	w.verify()
}

// TestSimilarIssues_ManyHiddenInTheTail has long issues that the caller may not see in front of a similar one: they use up
// nothing of the text that the search may read.
func TestSimilarIssues_ManyHiddenInTheTail(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	w.create(CreateIssueIn{Title: "Zanzibar"})
	changed := w.create(CreateIssueIn{Title: "Changed later"}).ID
	w.buffer.indexFew = 1
	w.create(CreateIssueIn{Title: "Something else"})
	w.indexAll()
	w.buffer.indexFew = indexFew
	w.patch(changed, IssuePatch{Title: Some("Zanzibar, too")})
	w.create(CreateIssueIn{Title: "Off to zanzibar"})
	for range 4 {
		w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret), Description: Some(strings.Repeat("a", 1000))}})
	}
	of := w.create(CreateIssueIn{Title: "A parcel for zanzibar"}).ID
	for _, c := range []struct {
		caller *Caller
		room   tailRoom
		found  int
	}{
		{&w.gus, tailRoom{text: 100, hidden: 100_000}, 3},
		{&w.gus, tailRoom{text: 100, hidden: 2000}, 2}, // the one behind them is not looked for
		{&w.ann, tailRoom{text: 100, hidden: 100_000}, 2},
		{&w.ann, tailRoom{text: 10_000}, 3},
	} {
		search := NewQuery[SimilarIssuesIn, SimilarList]("", "", Needs{}, func(v *View, in *SimilarIssuesIn) (Reply, error) {
			return similarWithin(v, in, c.room)
		})
		reply, err := w.ask(c.caller, search, &SimilarIssuesIn{ID: string(of)})
		if err != nil {
			t.Fatal(err)
		}
		if found := decode[SimilarList](t, reply.Body).Similar; len(found) != c.found {
			t.Errorf("%s with room for %+v finds %d, want %d", c.caller.ID, c.room, len(found), c.found)
		}
	}
}
