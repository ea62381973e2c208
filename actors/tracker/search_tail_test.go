package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// dueAt gives when a timer is due; the zero time when it is not set.
func (w *issueFixture) dueAt(kind string) time.Time {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	row, err := timers.Get(&v, timerKey(nil, kind, ""))
	if err != nil {
		w.Fatal(err)
	}
	if row == nil {
		return time.Time{}
	}
	return row.Value.Due.Time()
}

// TestIndexLater_WaitsForManyIssues makes issues one by one, and looks when a segment
// would be made of them.
func TestIndexLater_WaitsForManyIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	one := w.create(CreateIssueIn{Title: "An issue"}).ID
	for range indexFew - 2 {
		w.create(CreateIssueIn{Title: "An issue"})
	}
	for range 2 * indexFew { // an issue that is changed often is one issue
		w.patch(one, IssuePatch{Title: Some("Another")})
	}
	if due := w.dueAt(timerIndexSearch); !due.IsZero() {
		t.Fatalf("%d issues are indexed at %v", indexFew-1, due)
	}
	w.create(CreateIssueIn{Title: "An issue"})
	few := w.now
	if due := w.dueAt(timerIndexSearch); !due.Equal(few.Add(indexSoon).Truncate(time.Millisecond)) {
		t.Fatalf("%d issues are indexed at %v, it is %v", indexFew, due, few)
	}
	for range indexMany - indexFew {
		w.create(CreateIssueIn{Title: "An issue"})
	}
	if due := w.dueAt(timerIndexSearch); due.After(w.now) {
		t.Fatalf("%d issues are indexed at %v, it is %v", indexMany, due, w.now)
	}
	w.indexAll()
	if m := w.manifest(); len(m.Segments) != 1 || m.Segments[0].Docs != indexMany || w.buffer.recent.waiting != 0 {
		t.Errorf("segments %+v, %d issues wait", m.Segments, w.buffer.recent.waiting)
	}
	w.verify()
}

// TestTails_Bounded counts what tails take, and makes segments early where that is too
// much.
func TestTails_Bounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	var last IssueID
	for i := range indexCrowded - 1 {
		last = w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", i)}).ID
	}
	titles := w.tails.Use().Titles
	if titles < (indexCrowded-1)*recentTitleBytes || titles != w.buffer.recent.bytes {
		t.Errorf("titles take %d bytes", titles)
	}
	if _, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "Parcel 1", Dedupe: "block"}); err == nil {
		t.Fatal("a duplicate was made")
	}
	if now := w.tails.Use().Titles; now != titles {
		t.Errorf("after a command that failed titles take %d bytes, before %d", now, titles)
	}
	w.scores(&w.ann, last)
	if words := w.tails.Use().Words; words < (indexCrowded-1)*issueWordsBytes {
		t.Errorf("words take %d bytes", words)
	}
	w.buffer.Discard()
	if now := w.tails.Use().Titles; now != 0 {
		t.Errorf("nothing is remembered, and titles take %d bytes", now)
	}

	w.tails = NewTails(0)
	w.buffer.Remember(w.tails)
	if w.create(CreateIssueIn{Title: "One more"}); !w.due(timerIndexSearch) {
		t.Error("the tail is not indexed, though it takes too much memory")
	}
	w.scores(&w.ann, last)
	if words := w.tails.Use().Words; words != 0 {
		t.Errorf("words take %d bytes, which is too much", words)
	}
	w.indexAll()
	w.verify()
}

// The memory of titles that were indexed is given back. It is counted no longer, and many workspaces have some.
func TestRecentTitles_GiveMemoryBack(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	for i := range 2 * titlesRoom {
		w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", i)})
	}
	w.indexAll()
	r := &w.buffer.recent
	if len(r.all) == 0 || len(r.at) != len(r.all) || len(r.scan) != len(r.all) {
		t.Fatalf("%d titles, %d in the table, %d to scan", len(r.all), len(r.at), len(r.scan))
	}
	if cap(r.all) > titlesRoom || cap(r.scan) > titlesRoom || cap(r.undo) > titlesRoom {
		t.Errorf("for %d titles there is room for %d, %d to scan, and %d changes", len(r.all), cap(r.all), cap(r.scan), cap(r.undo))
	}
	w.create(CreateIssueIn{Title: "One more"})
	r.begin()
	for _, u := range r.undo[:cap(r.undo)] {
		if u.old.title != "" || u.old.terms != nil {
			t.Errorf("a change that can't be undone keeps %q", u.old.title)
		}
	}
	w.verify()
}

// So is the memory of titles that a command put which failed.
func TestRecentTitles_GiveMemoryBackAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	kept := w.create(CreateIssueIn{Title: "Parcel"})
	r := &w.buffer.recent
	for _, titles := range []int{titlesRoom / 4, 2 * titlesRoom} {
		r.begin()
		for i := range titles {
			r.set(recentTitle{doc: storage.Doc(i), title: "never made", open: true})
		}
		r.rollback()
		if len(r.all) != 1 || len(r.scan) != 1 || r.at[storage.DocOf(kept.id())] != 0 || len(r.at) != 1 || r.bytes != r.all[0].bytes() {
			t.Fatalf("%d titles, %d in the table, %d to scan, %d bytes", len(r.all), len(r.at), len(r.scan), r.bytes)
		}
		if cap(r.all) > titlesRoom || cap(r.scan) > titlesRoom {
			t.Errorf("after %d titles there is room for %d, and %d to scan", titles, cap(r.all), cap(r.scan))
		}
		for _, e := range r.all[1:cap(r.all)] {
			if e.title != "" {
				t.Fatalf("after %d titles the memory has one that was never made", titles)
			}
		}
	}
	w.verify()
}

// Workspaces without words in their tails take memory, too.
func TestTails_ForgetWorkspaces(t *testing.T) {
	t.Parallel()
	tails := NewTails(20 * tailWordsBytes)
	for i := range 100 {
		tails.trim(tails.workspace(storage.ID{byte(i)}))
	}
	if n, use := len(tails.of), tails.Use().Words; n != 10 || use != 10*tailWordsBytes {
		t.Errorf("%d workspaces are remembered, which take %d bytes", n, use)
	}
}

// TestTails_Await notes searches that go through many issues of a tail, and not those that find enough at once.
func TestTails_Await(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{Title: "Rare"})
	for range indexMany - 2 {
		w.create(CreateIssueIn{Title: "Parcel"})
	}
	awaited := func(query string) bool {
		w.list(&w.ann, ListIssuesIn{Limit: 1, IssueFilter: IssueFilter{Search: Some(query)}})
		return w.tails.TakeAwaited(w.workspace)
	}
	if awaited("rare") {
		t.Errorf("a segment of %d issues is awaited", indexMany-1)
	}
	w.create(CreateIssueIn{Title: "Parcel"})
	if awaited("parcel") {
		t.Error("a search that found its page among the newest issues awaits a segment")
	}
	if !awaited("rare") {
		t.Errorf("no segment of %d issues is awaited", indexMany)
	}
	if w.tails.TakeAwaited(w.workspace) {
		t.Error("it is awaited after it was made")
	}
}

// TestTails_FindWhatChanged keeps an issue's words, and changes the issue.
func TestTails_FindWhatChanged(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	of := w.create(CreateIssueIn{Title: "A parcel for zanzibar"}).ID
	other := w.create(CreateIssueIn{Title: "Nothing of the kind"}).ID
	if scores := w.scores(&w.ann, of); scores != "" {
		t.Errorf("similar are %s", scores)
	}
	w.patch(other, IssuePatch{Title: Some("Zanzibar")})
	if scores := w.scores(&w.ann, of); scores == "" {
		t.Error("the changed issue is not found")
	}
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(other)})
	if scores := w.scores(&w.ann, of); scores != "" {
		t.Errorf("similar are %s", scores)
	}
}

// TestSearch_LooksIntoTheTail searches issues that no segment holds, with letters that
// have other forms, and characters that JSON escapes.
func TestSearch_LooksIntoTheTail(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	for i, title := range []string{"Plain CRASH", "Tab\tcrash", "“crash”", "Ｃｒａｓｈ", "crêpe", `back\slash "quoted"`, "\u2028crash"} {
		w.create(CreateIssueIn{Title: title})
		for query, most := range map[string]int{"crash": 7, "crepe": 7, "slash": 7, "tcrash": 7, "u2028crash": 7, "2028": 7} {
			want := 0
			for _, word := range wordsOf(title) {
				if word == query {
					want = 1
				}
			}
			got := 0
			for _, one := range w.list(&w.ann, ListIssuesIn{Limit: most, IssueFilter: IssueFilter{Search: Some(query)}}).Issues {
				if one.Title == title {
					got++
				}
			}
			if got != want {
				t.Errorf("%d: a search for %q finds %q %d times, want %d", i, query, title, got, want)
			}
		}
	}
}

// The words of an issue are those of the record that is there, also when a workspace was deleted and
// imported again: its issues have the same ids and versions then, and perhaps other texts.
func TestTailWords_OfAnotherCopy(t *testing.T) {
	t.Parallel()
	words := NewTails(1 << 20).workspace(storage.ID{1})
	record := func(title string) storage.Record {
		rec, err := storage.ParseRecord(append(storage.AppendHeader(nil, storage.Header{Version: 1}), `{"title":"`+title+`"}`...))
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	var last *issueWords
	for _, c := range []struct {
		title string
		known bool
	}{{"printer", false}, {"printer", true}, {"license", false}, {"printer", false}} {
		found, err := words.find(&View{}, 1, record(c.title))
		if err != nil {
			t.Fatal(err)
		}
		if (found == last) != c.known {
			t.Errorf("%s: known %t", c.title, found == last)
		}
		last = found
	}
}

// TestIndexLater_LongIssues does not have long issues wait for others, also those that are created while a segment is made.
func TestIndexLater_LongIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.buffer.indexFew = indexFew
	w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(strings.Repeat("a", indexLong/2))}})
	if w.due(timerIndexSearch) {
		t.Fatal("a short issue is indexed")
	}
	long := CreateIssueIn{IssueFields: IssueFields{Description: Some(strings.Repeat("a", indexLong))}}
	w.create(long)
	if due := w.dueAt(timerIndexSearch); !due.Equal(w.now.Add(indexSoon).Truncate(time.Millisecond)) {
		t.Fatalf("a long issue is indexed at %v, it is %v", due, w.now)
	}
	if err := w.flow(indexSearchOp, func(op *Op) error {
		if op == completeSegmentOp {
			w.create(long)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if m := w.manifest(); len(m.Segments) != 1 || m.Segments[0].Docs != 2 {
		t.Errorf("segments %+v", m.Segments)
	}
	if !w.due(timerIndexSearch) {
		t.Error("the issue that was created meanwhile is not indexed")
	}
	w.buffer.Discard()
	w.indexAll()
	if w.due(timerIndexSearch) || w.manifest().Through == 0 {
		t.Error("the timer stays")
	}
	w.verify()
}
