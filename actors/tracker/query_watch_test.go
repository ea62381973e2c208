package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchyard/storage"
)

// watched runs a query as ask does, and counts how often it lets others go first. It ends with errCutOff at the call
// that most is; 0 for never.
func (w *issueFixture) watched(op *Op, in any, most int) (calls int, err error) {
	w.Helper()
	snap := w.db.NewSnapshot()
	defer func() {
		if err := snap.Close(); err != nil {
			w.Error(err)
		}
	}()
	v := NewView(storage.NewView(snap, 1, w.workspace), &w.ann, w.now, nil)
	v.Remember(w.tails)
	v.Filter(w.sets)
	v.Watch(func() error {
		if calls++; calls == most {
			return errCutOff
		}
		return nil
	})
	_, err = op.RunQuery(v, in)
	return calls, err
}

// hangul is a text of so many characters without a space, each of which NFKD takes apart.
func hangul(length int) string {
	var b strings.Builder
	for i := range length {
		b.WriteRune(rune(0xac01 + i*7919%5000))
	}
	return b.String()
}

func searchFor(query string) *ListIssuesIn {
	return &ListIssuesIn{Limit: 100, IssueFilter: IssueFilter{Search: Some(query)}}
}

// TestQueries_WatchedWithinRows has few rows with much work in each. The queries let others go first, and end where their time is up.
func TestQueries_WatchedWithinRows(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	var last IssueID
	for i := range 4 {
		description := strings.Repeat(hangul(3000)+" ", 40)
		made := w.create(CreateIssueIn{Title: fmt.Sprintf("Long %d", i), IssueFields: IssueFields{Description: Some(description)}}).ID
		if i > 0 {
			w.relate(last, "blocks", made)
		}
		last = made
	}
	for _, c := range []struct {
		name  string
		op    *Op
		in    any
		least int
	}{
		{"search", ListIssues, searchFor("zzz"), 80},
		{"similar issues", SimilarIssues, &SimilarIssuesIn{ID: string(last)}, 80},
		{"graph", GraphOfIssue, &IssueGraphIn{ID: string(last)}, 1},
	} {
		calls, err := w.watched(c.op, c.in, 0)
		if err != nil || calls < c.least {
			t.Errorf("%s: others could go first %d times, want %d (%v)", c.name, calls, c.least, err)
		}
		if calls, err := w.watched(c.op, c.in, 1); !errors.Is(err, errCutOff) || calls != 1 {
			t.Errorf("%s: ends with %v after %d calls", c.name, err, calls)
		}
	}
	if words := w.tails.Use().Words; words < issueWordsBytes {
		t.Errorf("the words that similar issues met take %d bytes", words)
	}
}

// TestSearch_WatchedInDictionaries searches for a beginning that very many words of few issues have.
func TestSearch_WatchedInDictionaries(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for i := range 2 {
		var b strings.Builder
		for j := range 10_000 {
			fmt.Fprintf(&b, "a%d ", 10_000*i+j)
		}
		w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(b.String())}})
	}
	w.indexAll()
	calls, err := w.watched(ListIssues, searchFor("a"), 0)
	if err != nil || calls < 60 {
		t.Errorf("others could go first %d times (%v)", calls, err)
	}
}

// TestListIssues_WatchedBySets lists few of the issues that the sets select.
func TestListIssues_WatchedBySets(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = 1000
	for range 600 {
		w.create(CreateIssueIn{})
	}
	w.buildSets()
	calls, err := w.watched(ListIssues, &ListIssuesIn{IssueFilter: IssueFilter{View: Some("active"), Search: Some("zzz")}}, 0)
	if err != nil || calls > 1 {
		t.Errorf("no issue is active: others could go first %d times (%v)", calls, err)
	}
	in := searchFor("zzz")
	in.Status = Some(w.list(&w.ann, ListIssuesIn{Limit: 1}).Issues[0].Status)
	if calls, err := w.watched(ListIssues, in, 0); err != nil || calls < 4 {
		t.Errorf("others could go first %d times (%v)", calls, err)
	}
}

// TestSearch_PagesByText looks through more text than a page may: the page ends with a cursor, and the next one goes on.
func TestSearch_PagesByText(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	long := "é" + strings.Repeat(" ", maxSearchedText/16)
	want := w.create(CreateIssueIn{Title: "Zebra"}).ID
	for range 20 {
		w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(long)}})
	}
	in := searchFor("zebra")
	page := w.list(&w.ann, *in)
	if len(page.Issues) != 0 || page.NextCursor == "" {
		t.Fatalf("the first page has %d issues, and the cursor %q", len(page.Issues), page.NextCursor)
	}
	in.Cursor = Some(page.NextCursor)
	if page = w.list(&w.ann, *in); len(page.Issues) != 1 || page.Issues[0].ID != want || page.NextCursor != "" {
		t.Errorf("the next page has %d issues, and the cursor %q", len(page.Issues), page.NextCursor)
	}
}
