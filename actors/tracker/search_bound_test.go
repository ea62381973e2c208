package tracker

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/storage"
)

// A page of a search looks through the texts of so many issues at most, and the next one goes on behind them. It looks
// through none where the index has the words.
func TestSearch_PagesByIssues(t *testing.T) {
	t.Parallel()
	const texts = 4
	for _, row := range []struct {
		name  string
		words bool  // of one issue are too many for the index
		index []int // after so many issues
		after func(*issueFixture, []IssueID)
		want  string
	}{
		{name: "no segment", want: "[[] [Wordy 5] [Wordy 0 Wordy old]]"},
		{name: "newer than the segment", index: []int{0}, want: "[[] [Wordy 5] [Wordy 0 Wordy old]]"},
		{name: "in the segment", index: []int{10}, want: "[[Wordy 5 Wordy 0 Wordy old]]"},
		{name: "too many words", words: true, index: []int{10}, want: "[[] [Wordy 5] [Wordy 0 Wordy old]]"},
		{name: "too many words in the older segment", words: true, index: []int{5, 10}, want: "[[Wordy 5] [Wordy 0 Wordy old]]"},
		{name: "changed since", index: []int{10}, want: "[[] [Wordy 5] [Wordy 0 Wordy old]]", after: func(w *issueFixture, all []IssueID) {
			for _, id := range all {
				w.patch(id, IssuePatch{IssueFields: IssueFields{Description: Some("changed")}})
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			old := CreateIssueIn{Title: "Wordy old"}
			if row.words {
				old.Description = Some(*manyWords(searchWhole+1, 0))
			}
			w.create(old)
			var all []IssueID
			for i := range 10 {
				if slices.Contains(row.index, i) {
					w.indexAll()
				}
				title := "Parcel"
				if i%5 == 0 {
					title = "Wordy"
				}
				all = append(all, w.create(CreateIssueIn{Title: fmt.Sprint(title, " ", i)}).ID)
			}
			if slices.Contains(row.index, 10) {
				w.indexAll()
			}
			if row.after != nil {
				row.after(w, all)
			}
			var got [][]string
			w.eachSearchPage(&w.ann, "word", 50, texts, func(page []Issue) { got = append(got, titles(page)) })
			if fmt.Sprint(got) != row.want {
				t.Errorf("pages %v, want %s", got, row.want)
			}
		})
	}
}

// eachSearchPage calls fn with the pages of a search, which each may look through so many texts.
func (w *issueFixture) eachSearchPage(who *Caller, query string, limit, texts int, fn func(page []Issue)) {
	w.Helper()
	for cursor, more := (Opt[string]{}), true; more; {
		page := w.searchPage(who, query, cursor, limit, texts)
		fn(page.Issues)
		cursor, more = Some(page.NextCursor), page.NextCursor != ""
	}
}

// searchPage answers a search with words.
func (w *issueFixture) searchPage(who *Caller, query string, cursor Opt[string], limit, texts int) IssuePage {
	w.Helper()
	v := NewView(storage.NewView(w.db, 1, w.workspace), who, w.now, nil)
	first, err := newPage(nil, pageSpec{name: "issues", limit: limit, cursor: cursor, keyLen: storage.ListedKeyLen})
	if err != nil {
		w.Fatal(err)
	}
	s, err := v.search(query)
	if err != nil {
		w.Fatal(err)
	}
	s.left = texts
	page := issuePage{page: first, visibility: visibility{v: v}}
	rest := residualFilter{v: v, f: &IssueFilter{}, now: At(w.now), visibility: &page.visibility, search: s}
	page.keeps = rest.keeps
	reply, err := page.build(v, issueList{docs: s.docs})
	if err != nil {
		w.Fatal(err)
	}
	if s.left < 0 {
		w.Errorf("%d texts are looked through, want %d at most", texts-s.left, texts)
	}
	return decode[IssuePage](w, reply.Body)
}
