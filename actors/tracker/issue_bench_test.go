package tracker

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// newIssueBench returns an issueFixture on a store in memory with a node's options.
func newIssueBench(b *testing.B) *issueFixture {
	store, err := storage.Open(storage.Config{Dir: "data", FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return newIssueWorldIn(b, store.State())
}

// fill makes n issues, 500 per commit. Every other one is done, one in a hundred has an
// assignee, a label and a parent, and one in two is in another team.
func (w *issueFixture) fill(n int) {
	var parent IssueID
	req := w.request(&w.ann)
	for i := range n {
		in := &CreateIssueIn{Title: fmt.Sprintf("Issue %d does not work as it should", i), IssueFields: IssueFields{Description: Some("What happens, what should happen, and how to make it happen again.")}}
		if i%2 == 0 {
			in.Status = Some(StatusDone)
		}
		if i%100 == 1 {
			in.AssigneeID, in.LabelIDs = Some("ann"), Some([]string{"bug"})
			if parent != "" {
				in.ParentID = Some(parent)
			}
		}
		if i%4 < 2 {
			in.TeamID = Some(w.web)
		}
		reply, err := w.buffer.Run(CreateIssue, req, in, w.now)
		if err != nil {
			w.Fatal(err)
		}
		if i == 0 {
			parent = decode[Issue](w, reply.Body).ID
		}
		if i%500 == 499 {
			w.commit()
		}
	}
	w.commit()
}

func BenchmarkCreateIssue(b *testing.B) {
	w := newIssueBench(b)
	w.fill(1000)
	req := w.request(&w.ann)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := &CreateIssueIn{Title: "Something does not work as it should", IssueFields: IssueFields{Description: Some("What happens, and what should happen.")}}
		if _, err := w.buffer.Run(CreateIssue, req, in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
			b.Fatal(err)
		}
		if i%32 == 31 {
			w.commit()
		}
	}
	w.commit()
}

func BenchmarkPatchIssue(b *testing.B) {
	w := newIssueBench(b)
	w.fill(1000)
	id := string(w.list(&w.ann, ListIssuesIn{}).Issues[0].ID)
	req := w.request(&w.ann)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := &PatchIssueIn{ID: id, IssuePatch: IssuePatch{Title: Some(fmt.Sprint(i))}}
		if _, err := w.buffer.Run(PatchIssue, req, in, w.now); err != nil {
			b.Fatal(err)
		}
		if i%32 == 31 {
			w.commit()
		}
	}
	w.commit()
}

func BenchmarkIssueByID(b *testing.B) {
	w := newIssueBench(b)
	w.fill(10_000)
	in := &IssueByIDIn{ID: string(w.list(&w.ann, ListIssuesIn{}).Issues[20].ID)}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, buf)
		if _, err := IssueByID.RunQuery(v, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListIssues(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		w := newIssueBench(b)
		w.fill(n)
		if err := w.db.Flush(); err != nil {
			b.Fatal(err)
		}
		last := string(w.list(&w.ann, ListIssuesIn{Limit: 1}).Issues[0].ID)
		for _, row := range []struct {
			name   string
			filter IssueFilter
		}{
			{"all", IssueFilter{}},
			{"status", IssueFilter{Status: Some(StatusDone)}},
			{"completed+team", IssueFilter{View: Some("completed"), TeamID: Some(string(w.web))}},
			{"mine+priority+status", IssueFilter{View: Some("mine"), Priority: Some(PriorityMedium), Status: Some(StatusBacklog)}},
			{"label+hasParent", IssueFilter{LabelID: Some("bug"), HasParent: Some(true)}},
			{"isParent=false", IssueFilter{IsParent: Some(false)}},
			{"isParent=true", IssueFilter{IsParent: Some(true)}},
			{"identifier", IssueFilter{Identifier: Some("core-7")}},
			{"parent, none", IssueFilter{ParentID: Some(last)}},
		} {
			b.Run(fmt.Sprintf("%s/%d", row.name, n), func(b *testing.B) {
				in := &ListIssuesIn{Limit: 50, IssueFilter: row.filter}
				buf := make([]byte, 0, 128<<10)
				b.ReportAllocs()
				for b.Loop() {
					snap := w.db.NewSnapshot()
					v := NewView(storage.NewView(snap, 1, w.workspace), &w.ann, w.now, buf)
					if _, err := ListIssues.RunQuery(v, in); err != nil {
						b.Fatal(err)
					}
					if err := snap.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// fillDense makes n issues of which each filter of BenchmarkListFilters has many.
func (w *issueFixture) fillDense(b *testing.B, n int) {
	statuses := []IssueStatus{StatusBacklog, StatusTodo, StatusInProgress, StatusDone}
	priorities := []IssuePriority{PriorityLow, PriorityMedium, PriorityHigh}
	req := w.request(&w.ann)
	for i := range n {
		in := &CreateIssueIn{Title: fmt.Sprintf("Issue %d does not work", i), IssueFields: IssueFields{
			Description: Some("What happens, what should happen, and how to make it happen again."),
			Status:      Some(statuses[i%4]), Priority: Some(priorities[i%3]), AssigneeID: Some([]string{"ann", "gus"}[i%2]),
		}}
		if i%5 < 2 {
			in.TeamID = Some(w.web)
		}
		// Project and cycle are on a third of the issues each, and together on 25.
		switch {
		case i%(n/25) == 0:
			in.ProjectID, in.CycleID, in.LabelIDs = Some("p"), Some("c"), Some([]string{"bug"})
		case i%3 == 0:
			in.ProjectID = Some("p")
		case i%3 == 1:
			in.CycleID = Some("c")
		default:
			in.LabelIDs = Some([]string{"bug"})
		}
		if _, err := w.buffer.Run(CreateIssue, req, in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
			b.Fatal(err)
		}
		if i%500 == 499 {
			w.commit()
		}
	}
	w.commit()
	if err := w.db.Flush(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkListFilters lists 50 issues by combined filters, by indexes and by sets.
// Without -short it also does so among 1,000,000.
func BenchmarkListFilters(b *testing.B) {
	sizes := []int{10_000, 100_000}
	if !testing.Short() {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		w := newIssueBench(b)
		w.fillDense(b, n)
		w.buildSets()
		b.Logf("%d issues: sets of %d KiB", n, w.sets.Bytes()>>10)
		for _, row := range []struct {
			name   string
			filter IssueFilter
		}{
			{"one", IssueFilter{Status: Some(StatusTodo)}},
			{"three dense", IssueFilter{Priority: Some(PriorityLow), AssigneeID: Some("ann"), TeamID: Some(string(w.core))}},
			{"three dense, 25 in common", IssueFilter{ProjectID: Some("p"), CycleID: Some("c"), LabelID: Some("bug")}},
			{"two dense, none in common", IssueFilter{Status: Some(StatusTodo), AssigneeID: Some("ann")}},
		} {
			for _, by := range []string{"indexes", "sets"} {
				b.Run(fmt.Sprintf("%s/by %s/%d", row.name, by, n), func(b *testing.B) {
					in := &ListIssuesIn{Limit: 50, IssueFilter: row.filter}
					buf := make([]byte, 0, 128<<10)
					b.ReportAllocs()
					for b.Loop() {
						v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, buf)
						if by == "sets" {
							v.Filter(w.sets)
						}
						if _, err := ListIssues.RunQuery(v, in); err != nil {
							b.Fatal(err)
						}
						if by == "sets" && v.Filtered() == nil {
							b.Fatal("the list did without sets")
						}
					}
				})
			}
		}
	}
}
