package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"switchyard/storage"
)

// Every table and plain row of the schema is exported, or left out for a reason; the same
// goes for every kind of timer. Every kind of line can be imported.
func TestTransfer_CoversTheSchema(t *testing.T) {
	t.Parallel()
	kinds := map[storage.TableID]string{}
	for _, kind := range transferKinds {
		if kind.take == nil {
			t.Errorf("lines of type %s can't be imported", kind.name)
		}
		for _, table := range kind.tables {
			if other := kinds[table]; other != "" {
				t.Errorf("table %d is in the lines of type %s and of type %s", table, other, kind.name)
			}
			kinds[table] = kind.name
		}
	}
	known := map[storage.TableID]bool{}
	check := func(id storage.TableID, name string) {
		known[id] = true
		if (kinds[id] == "") == (notTransferred[id] == "") {
			t.Errorf("%s (table %d) must be in transferKinds or, with a reason, in notTransferred", name, id)
		}
	}
	for _, table := range tables {
		check(table.id, table.name)
	}
	for _, row := range Schema().Rows {
		check(row.ID, row.Name)
	}
	for id := range kinds {
		if !known[id] {
			t.Errorf("transferKinds has table %d, which the schema has not", id)
		}
	}
	for id := range notTransferred {
		if !known[id] {
			t.Errorf("notTransferred has table %d, which the schema has not", id)
		}
	}
	for kind := range TimerOps {
		if (transferredTimers[kind] != nil) == (remadeTimers[kind] != "") {
			t.Errorf("timers of kind %s must be in transferredTimers or, with a reason, in remadeTimers", kind)
		}
	}
}

// exported returns the lines of a workspace's export.
func (w *testService) exported(id WorkspaceID, in *ExportIn, window int) []byte {
	w.Helper()
	e := NewExport(NewView(w.view(id.raw()), &Caller{Level: Admin}, w.now, nil), in)
	e.window = window
	var all []byte
	for {
		block, err := e.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, block...)
	}
}

func TestExport_OrderDoesNotDependOnTheWindow(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("yard")
	for n := range 20 {
		issue := w.issue(home.Token.Secret, home.Workspace.ID, home.Team.ID)
		w.must(home.Token.Secret, home.Workspace.ID, CreateComment, &CreateCommentIn{IssueID: string(issue.ID), Body: fmt.Sprint(n)})
		w.must(home.Token.Secret, home.Workspace.ID, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Estimate: Some(int64(n)), Repo: Some("a")}}})
	}
	whole := w.exported(home.Workspace.ID, &ExportIn{}, exportWindow)
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	lines = lines[:len(lines)-1]
	if len(lines) < 80 {
		t.Fatalf("the export has %d lines", len(lines))
	}
	for _, window := range []int{1, 2, 7, len(lines) - 2, len(lines) - 1} {
		if got := w.exported(home.Workspace.ID, &ExportIn{}, window); !bytes.Equal(got, whole) {
			t.Errorf("with a window of %d lines the export differs", window)
		}
	}
	made := Timestamp("")
	for n, line := range lines[1 : len(lines)-1] {
		var l struct {
			N    int
			Type string
			Data struct {
				ID        string
				CreatedAt Timestamp
			}
		}
		if err := json.Unmarshal(line, &l); err != nil || l.N != n+1 {
			t.Fatalf("line %d is %s: %v", n+1, line, err)
		}
		if l.Data.ID != "" && l.Data.CreatedAt < made {
			t.Errorf("line %d, of %s, comes after one of %s", l.N, l.Data.CreatedAt, made)
		}
		made = max(made, l.Data.CreatedAt)
	}
	for after := range len(lines) + 3 {
		got := w.exported(home.Workspace.ID, &ExportIn{After: Some(int64(after))}, 7)
		sent := lines[min(after+1, len(lines)-1) : len(lines)-1]
		w.summarized(got, sent)
		checked := w.exported(home.Workspace.ID, &ExportIn{After: Some(int64(after)), Whole: Some(true)}, 7)
		end := fmt.Sprintf(`,"wholeSha256":"%x"}`, sha256.Sum256(slices.Concat(lines[:len(lines)-1]...)))
		if want := string(got[:len(got)-2]) + end + "\n"; string(checked) != want {
			t.Errorf("behind line %d comes %s, want %s", after, checked, want)
		}
	}
}

// Something is sent while lines are left out, however many these are. What comes is JSON all the same.
func TestExport_IsNotSilent(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("yard")
	for range 10 {
		w.issue(home.Token.Secret, home.Workspace.ID, home.Team.ID)
	}
	lines := bytes.SplitAfter(w.exported(home.Workspace.ID, &ExportIn{}, exportWindow), []byte{'\n'})
	lines = lines[:len(lines)-2] // without the last, and nothing behind it
	for after := range len(lines) + 1 {
		for _, whole := range []bool{false, true} {
			e := NewExport(NewView(w.view(home.Workspace.ID.raw()), &Caller{Level: Admin}, w.now, nil), &ExportIn{After: Some(int64(after)), Whole: Some(whole)})
			e.passes = 1
			var all []byte
			for {
				block, err := e.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || len(block) == 0 {
					t.Fatalf("%q, %v", block, err)
				}
				all = append(all, block...)
			}
			left := min(after+1, len(lines))
			spaces := bytes.Repeat([]byte{' '}, left)
			if sent := slices.Clone(lines[left:]); len(sent) > 0 {
				sent[0] = slices.Concat(spaces, sent[0])
				w.summarized(all, sent)
			} else {
				w.summarized(all, nil)
			}
			if !bytes.HasPrefix(all, append(spaces, '{')) {
				t.Errorf("behind line %d comes %.100s", after, all)
			}
		}
	}
}

// summarized checks that an export has these lines, and a last one that counts them.
func (w *testService) summarized(got []byte, lines [][]byte) {
	w.Helper()
	before := slices.Concat(lines...)
	last, ok := bytes.CutPrefix(got, before)
	var end exportSummary
	if err := json.Unmarshal(last, &end); !ok || err != nil {
		w.Fatalf("the export has %s: %v", got, err)
	}
	counts := map[string]int64{}
	for _, line := range lines {
		var l struct{ Type string }
		if err := json.Unmarshal(line, &l); err != nil {
			w.Fatal(err)
		}
		counts[l.Type]++
	}
	if sum := sha256.Sum256(before); end.Type != "end" || end.SHA256 != hex.EncodeToString(sum[:]) || !maps.Equal(end.Counts, counts) {
		w.Errorf("the last line of %d others is %s", len(lines), last)
	}
}
