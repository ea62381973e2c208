package tracker

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

func TestListIssues_Pages(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for i := range 5 {
		w.create(CreateIssueIn{Title: fmt.Sprint(i)})
	}
	first := w.list(&w.ann, ListIssuesIn{Limit: 2})
	if !slices.Equal(titles(first.Issues), []string{"4", "3"}) || first.NextCursor == "" {
		t.Fatalf("first page %+v", first)
	}
	// The limit is no part of the query, nor is who asks.
	rest := w.list(&w.gus, ListIssuesIn{Limit: 3, Cursor: Some(first.NextCursor), IssueFilter: IssueFilter{View: Some("all"), IncludeSnoozed: Some(false)}})
	if !slices.Equal(titles(rest.Issues), []string{"2", "1", "0"}) || rest.NextCursor != "" {
		t.Errorf("rest %+v", rest)
	}
	if all := w.list(&w.ann, ListIssuesIn{}); len(all.Issues) != 5 || all.NextCursor != "" {
		t.Errorf("all %+v", all)
	}
	if body, err := w.ask(&w.ann, ListIssues, &ListIssuesIn{IssueFilter: IssueFilter{TeamID: Some("x")}}); err != nil || string(body.Body) != `{"issues":[]}` {
		t.Errorf("an empty list is %s, %v", body.Body, err)
	}
}

func TestListIssues_RefusesCursors(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for range 3 {
		w.create(CreateIssueIn{})
	}
	good := w.list(&w.ann, ListIssuesIn{Limit: 1}).NextCursor
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	later := base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion + 1}, raw[1:]...))
	for _, cursor := range []string{"", "x", "*", good[1:], good + "A", good + "=", later, base64.RawURLEncoding.EncodeToString(raw[:9]), strings.Repeat("A", 4096)} {
		_, err := w.ask(&w.ann, ListIssues, &ListIssuesIn{Cursor: Some(cursor)})
		wantCode(t, err, CodeBadRequest, "query.cursor")
	}
	for _, f := range []IssueFilter{
		{Status: Some(StatusTodo)}, {TeamID: Some("")}, {HasParent: Some(false)}, {HasParent: Some(true)}, {IncludeSnoozed: Some(true)}, {View: Some("mine")}, {AssigneeID: Some("a=b")},
	} {
		_, err := w.ask(&w.ann, ListIssues, &ListIssuesIn{Cursor: Some(good), IssueFilter: f})
		wantCode(t, err, CodeBadRequest, "query.cursor")
	}
	_, err = w.ask(&w.ann, ListTriage, &ListIssuesIn{Cursor: Some(good)})
	wantCode(t, err, CodeBadRequest, "query.cursor")
}

func TestListTriage(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for i, status := range []IssueStatus{StatusTriage, StatusTodo, StatusTriage} {
		w.create(CreateIssueIn{Title: fmt.Sprint(i), IssueFields: IssueFields{Status: Some(status), AssigneeID: Some("ann")}})
	}
	for _, row := range []struct {
		f    IssueFilter
		want []string
	}{
		{IssueFilter{}, []string{"2", "0"}},
		{IssueFilter{View: Some("mine")}, []string{"2", "0"}},
		{IssueFilter{Status: Some(StatusTodo)}, []string{}},
		{IssueFilter{View: Some("active")}, []string{}},
		{IssueFilter{View: Some("triage"), Status: Some(StatusTriage)}, []string{"2", "0"}},
	} {
		reply, err := w.ask(&w.ann, ListTriage, &ListIssuesIn{IssueFilter: row.f})
		if err != nil {
			t.Fatal(err)
		}
		if got := titles(decode[IssuePage](t, reply.Body).Issues); !slices.Equal(got, row.want) {
			t.Errorf("%+v: got %v, want %v", row.f, got, row.want)
		}
	}
}

// The triage list costs as much as the list of issues, and must not keep other workspaces
// waiting either.
func TestListTriage_TakesATurn(t *testing.T) {
	t.Parallel()
	for _, op := range []*Op{ListIssues, ListTriage} {
		if !op.Heavy || !op.Filtered {
			t.Errorf("%s: takes a turn: %t, uses the sets: %t", op.Name, op.Heavy, op.Filtered)
		}
	}
}

func TestListIssues_SnoozeRunsOut(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{IssueFields: IssueFields{SnoozedUntil: Some(string(At(w.now.Add(time.Minute))))}})
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {59 * time.Second, 0}, {time.Minute, 1}} {
		at := w.now
		w.now = at.Add(row.after)
		if got := w.list(&w.ann, ListIssuesIn{}); len(got.Issues) != row.want {
			t.Errorf("after %v: %d issues, want %d", row.after, len(got.Issues), row.want)
		}
		w.now = at
	}
	if got := w.list(&w.ann, ListIssuesIn{IssueFilter: IssueFilter{IncludeSnoozed: Some(true)}}); len(got.Issues) != 1 {
		t.Errorf("%d issues with the snoozed ones", len(got.Issues))
	}
}

func TestListIssues_HiddenChildMakesNoParent(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hidden, seen := w.create(CreateIssueIn{Title: "hidden child"}), w.create(CreateIssueIn{Title: "seen child"})
	w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(hidden.ID), TeamID: Some(w.secret)}})
	w.create(CreateIssueIn{Title: "child", IssueFields: IssueFields{ParentID: Some(seen.ID)}})
	w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(seen.ID), TeamID: Some(w.secret)}})
	for _, row := range []struct {
		who  *Caller
		is   bool
		want []string
	}{
		{&w.ann, true, []string{"seen child", "hidden child"}},
		{&w.gus, true, []string{"seen child"}},
		{&w.gus, false, []string{"child", "hidden child"}},
	} {
		if got := titles(w.list(row.who, ListIssuesIn{IssueFilter: IssueFilter{IsParent: Some(row.is)}}).Issues); !slices.Equal(got, row.want) {
			t.Errorf("isParent=%v for %s: %v, want %v", row.is, row.who.ID, got, row.want)
		}
	}
}

func TestListIssues_LargePageEndsEarly(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	large := strings.Repeat("x", 1<<20)
	for range 12 {
		w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(large)}})
	}
	in, seen, pages := ListIssuesIn{Limit: 100}, 0, 0
	for more := true; more; pages++ {
		page := w.list(&w.ann, in)
		seen += len(page.Issues)
		in.Cursor, more = Some(page.NextCursor), page.NextCursor != ""
	}
	if seen != 12 || pages != 12 {
		t.Errorf("%d issues on %d pages, want 12 on 12", seen, pages)
	}
}

func TestIssuePage_BoundsWhatIsExamined(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for i := range 10 {
		w.create(CreateIssueIn{Title: fmt.Sprint(i), IssueFields: IssueFields{IsDraft: Some(i != 0 && i != 5)}})
	}
	var got [][]string
	var cursor Opt[string]
	for more := true; more; {
		v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, nil)
		first, err := newPage(nil, pageSpec{name: "issues", limit: 5, cursor: cursor, keyLen: storage.ListedKeyLen})
		if err != nil {
			t.Fatal(err)
		}
		first.examine = 4
		page := issuePage{page: first, keeps: func(_ []byte, rec storage.Record) (bool, error) { return rec.Flags()&issueDraft == 0, nil }, visibility: visibility{v: v}}
		reply, err := page.build(v, issueList{})
		if err != nil {
			t.Fatal(err)
		}
		answer := decode[IssuePage](t, reply.Body)
		got = append(got, titles(answer.Issues))
		cursor, more = Some(answer.NextCursor), answer.NextCursor != ""
	}
	if fmt.Sprint(got) != "[[] [5] [0]]" {
		t.Errorf("pages %v", got)
	}
}

func FuzzParseCursor(f *testing.F) {
	testkit.Corpus(f)
	f.Add(string(appendCursor(nil, 7, make([]byte, storage.ListedKeyLen))), uint64(7), storage.ListedKeyLen)
	f.Add("Aw", uint64(0), 0)
	f.Add("\n"+string(appendCursor(nil, 7, make([]byte, storage.ListedKeyLen)))+"\r", uint64(7), storage.ListedKeyLen)
	f.Fuzz(func(t *testing.T, cursor string, query uint64, keyLen int) {
		last, err := parseCursor(cursor, query, keyLen)
		if err != nil {
			wantCode(t, err, CodeBadRequest, "query.cursor")
			return
		}
		if again := string(appendCursor(nil, query, last)); again != cursor {
			t.Errorf("%q is read as %x, which is %q", cursor, last, again)
		}
	})
}
