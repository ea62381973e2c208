package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/storage"
)

func (w *issueFixture) history(id IssueID, limit int, cursor string) HistoryPage {
	w.Helper()
	reply, err := w.ask(&w.ann, IssueHistory, &IssueHistoryIn{ID: string(id), Limit: limit, Cursor: cursor})
	if err != nil {
		w.Fatal(err)
	}
	var page HistoryPage // goccy's RawMessage would alias its input
	if err := json.Unmarshal(reply.Body, &page); err != nil {
		w.Fatalf("decode %s: %v", reply.Body, err)
	}
	return page
}

// described formats entries as "field from to".
func described(entries []HistoryEntry) (all []string) {
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%s %s %s", e.Field, e.From, e.To))
	}
	return all
}

func TestIssueHistory(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{Title: "old", IssueFields: IssueFields{LabelIDs: Some([]string{"a"})}})
	if page := w.history(issue.ID, 0, ""); page.History == nil || len(page.History) != 0 || page.NextCursor != "" {
		t.Errorf("a new issue has the history %+v", page)
	}
	w.patch(issue.ID, IssuePatch{Title: Some("<new>"), IssueFields: IssueFields{Estimate: Some(int64(3)), IsDraft: Some(true), LabelIDs: Some([]string{"b"})}})
	w.patch(issue.ID, IssuePatch{Title: Some("<new>")}) // no field differs
	w.run(&w.gus, PatchIssue, patchIn(issue.ID, "", IssuePatch{IssueFields: IssueFields{SubIssueSortOrder: Some(1.5), TeamID: Some(w.web)}}))
	want := []string{
		`teamId "` + string(w.core) + `" "` + string(w.web) + `"`, `subIssueSortOrder null 1.5`, `identifier "CORE-1" "WEB-1"`,
		`title "old" "<new>"`, `estimate null 3`, `isDraft false true`, `labelIds "[\"a\"]" "[\"b\"]"`,
	}
	got := w.history(issue.ID, 0, "")
	if !slices.Equal(described(got.History), want) {
		t.Errorf("history %q, want %q", described(got.History), want)
	}
	ids := map[string]bool{}
	for i, e := range got.History {
		who := "ann"
		if i < 3 {
			who = "gus"
		}
		if e.ActorID != who || e.ActorType != ActorUser || e.IssueID != issue.ID || e.OrganizationID != issue.OrganizationID || e.CreatedAt > At(w.now) || e.CreatedAt <= issue.CreatedAt || ids[e.ID] {
			t.Errorf("entry %d is %+v", i, e)
		}
		if _, ok := storage.ParseID(e.ID); !ok {
			t.Errorf("entry %d has the id %s", i, e.ID)
		}
		ids[e.ID] = true
	}
	w.verify()
}

func TestIssueHistory_KeepsLongTextsWhole(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first, second := strings.Repeat("ä\u2028", 131_072), strings.Repeat("\"\n", 131_072)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(first)}})
	for range 5 {
		w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Description: Some(second)}})
		w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Description: Some(first)}})
	}
	all := 0
	for cursor, pages := "", 1; ; pages++ {
		page := w.history(issue.ID, 100, cursor)
		for _, e := range page.History {
			var from, to string
			if json.Unmarshal(e.From, &from) != nil || json.Unmarshal(e.To, &to) != nil {
				t.Fatal("a value is no text")
			}
			if all%2 == 0 && (from != second || to != first) || all%2 == 1 && (from != first || to != second) {
				t.Errorf("entry %d is not what it was", all)
			}
			all++
		}
		if cursor = page.NextCursor; cursor == "" {
			if pages < 2 {
				t.Error("everything came in one page of more than 1 MiB")
			}
			break
		}
	}
	if all != 10 {
		t.Errorf("%d entries", all)
	}
}

func TestIssueHistory_Refuses(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other, hidden := w.under("", w.core, StatusTodo), w.under("", w.core, StatusTodo), w.under("", w.secret, StatusTodo)
	for _, id := range []IssueID{issue, other, hidden} {
		w.patch(id, IssuePatch{Title: Some("new"), IssueFields: IssueFields{Estimate: Some(int64(1))}})
	}
	ask := func(id IssueID, cursor string) error {
		_, err := w.ask(&w.gus, IssueHistory, &IssueHistoryIn{ID: string(id), Limit: 1, Cursor: cursor})
		return err
	}
	cursor := w.history(issue, 1, "").NextCursor
	wantCode(t, ask(hidden, ""), CodeNotFound)
	wantCode(t, ask("x", ""), CodeNotFound)
	wantCode(t, ask(issue, "x"), CodeBadRequest, "query.cursor")
	wantCode(t, ask(other, cursor), CodeBadRequest, "query.cursor")
	id, _ := storage.ParseID(issue)
	wantCode(t, ask(issue, string(appendCursor(nil, listQuery(id, "history"), []byte("short")))), CodeBadRequest, "query.cursor")
	if err := ask(issue, cursor); err != nil {
		t.Error(err)
	}
}

// A deletion removes the history of its issue only.
func TestDeleteIssue_RemovesItsHistory(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var ids []IssueID
	for range 3 {
		id := w.under("", w.core, StatusTodo)
		for i := range 5 {
			w.patch(id, IssuePatch{Title: Some(fmt.Sprint(i))})
		}
		ids = append(ids, id)
	}
	child := w.under(ids[1], w.core, StatusTodo)
	w.remove(ids[1])
	rows := 0
	v := storage.NewView(w.db, 1, w.workspace)
	gone, _ := storage.ParseID(ids[1])
	err := v.Rows(historyTable, nil, nil, func(fields, _ []byte) (bool, error) {
		if rows++; bytes.HasPrefix(fields, gone[:]) {
			t.Error("a row is left")
		}
		return true, nil
	})
	if err != nil || rows != 11 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
	if got := described(w.history(child, 0, "").History); len(got) != 1 || !strings.HasPrefix(got[0], "parentId") {
		t.Errorf("the child's history is %q", got)
	}
	w.verify()
}

// The verifier finds damaged rows.
func TestCheckHistory_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	id := w.under("", w.core, StatusTodo)
	w.patch(id, IssuePatch{Title: Some("new")})
	v := storage.NewView(w.db, 1, w.workspace)
	var key, value []byte
	err := v.Rows(historyTable, nil, nil, func(f, val []byte) (bool, error) {
		key, value = bytes.Clone(f), bytes.Clone(val)
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkHistory(&v, key, value); err != nil {
		t.Fatal(err)
	}
	for n := range value {
		if checkHistory(&v, key, value[:n]) == nil {
			t.Errorf("takes the first %d of %d bytes", n, len(value))
		}
	}
	if checkHistory(&v, key, append(bytes.Clone(value), 0xff)) == nil || checkHistory(&v, key[:20], value) == nil || checkHistory(&v, key[:3], value) == nil {
		t.Error("takes a row of another length")
	}
	key[0] ^= 1
	if checkHistory(&v, key, value) == nil {
		t.Error("takes a row of an issue that is not there")
	}
}

// The history lists all changes, for any actor and in pages of any size.
func TestIssueHistory_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		issue := w.create(CreateIssueIn{Title: "t"}).Issue
		w.create(CreateIssueIn{Title: "u"})
		var want []string // newest first
		read := func(t *rapid.T) {
			limit := rapid.IntRange(1, 100).Draw(t, "limit")
			if rapid.Bool().Draw(t, "small") {
				limit = rapid.IntRange(1, 3).Draw(t, "limit")
			}
			var got []string
			for cursor := ""; ; {
				page := w.history(issue.ID, limit, cursor)
				for _, e := range page.History {
					got = append(got, fmt.Sprintf("%s %s %s %s %s", e.ActorID, e.CreatedAt, e.Field, e.From, e.To))
				}
				if cursor = page.NextCursor; cursor == "" {
					break
				}
				if len(page.History) != limit {
					t.Fatalf("a page of %d with limit %d and a cursor", len(page.History), limit)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("history\n%q, want\n%q", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"patch": func(t *rapid.T) {
				who := rapid.SampledFrom([]*Caller{&w.ann, &w.gus}).Draw(t, "caller")
				p := IssuePatch{Title: drawOpt(t, "title", rapid.SampledFrom([]string{"t", "ä\"\\", "<"}), false), IssueFields: IssueFields{
					Description: drawOpt(t, "description", rapid.StringN(0, 20, -1), true),
					Status:      drawOpt(t, "status", rapid.SampledFrom(issueStatuses[:]), false),
					Resolution:  drawOpt(t, "resolution", rapid.SampledFrom([]string{"obsolete", "resolved"}), true),
					Estimate:    drawOpt(t, "estimate", rapid.Int64Range(0, 3), true),
					TeamID:      drawOpt(t, "team", rapid.SampledFrom([]TeamID{w.core, w.web}), false),
					LabelIDs:    drawOpt(t, "labels", rapid.SliceOfN(rapid.SampledFrom([]string{"l1", "l2"}), 0, 3), true),
				}}
				before := issue
				issue = decode[Issue](t, w.run(who, PatchIssue, patchIn(issue.ID, "", p)).Body)
				want = append(differences(t, who, &before, &issue), want...)
			},
			"read": read,
		})
		read(t)
		w.verify()
	})
}

// differences compares two versions of an issue by their JSON, field by field.
func differences(t tester, who *Caller, from, to *Issue) (all []string) {
	fields := func(issue *Issue) (names []string, values map[string]string) {
		text, err := json.Marshal(issue)
		if err != nil {
			t.Fatal(err)
		}
		values = map[string]string{}
		d := json.NewDecoder(bytes.NewReader(text))
		_, _ = d.Token()
		for d.More() {
			name, _ := d.Token()
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				t.Fatal(err)
			}
			var plain bytes.Buffer
			e := json.NewEncoder(&plain)
			e.SetEscapeHTML(false)
			if err := e.Encode(decode[any](t, value)); err != nil {
				t.Fatal(err)
			}
			names = append(names, name.(string))
			values[name.(string)] = strings.TrimSpace(plain.String())
		}
		return names, values
	}
	names, old := fields(from)
	_, now := fields(to)
	for _, name := range names {
		if old[name] != now[name] && name != "updatedAt" {
			all = append(all, fmt.Sprintf("%s %s %s %s %s", who.ID, to.UpdatedAt, name, old[name], now[name]))
		}
	}
	return all
}
