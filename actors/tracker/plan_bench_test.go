package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// benchText is a description of a usual length.
var benchText = strings.Repeat("What happens, what should happen, and how to make it happen again. ", 20)

// BenchmarkBulkIssues creates 100 issues in a command, and 100 in a command each.
func BenchmarkBulkIssues(b *testing.B) {
	const items = 100
	b.Run("bulk", func(b *testing.B) {
		w := newIssueBench(b)
		w.fill(1000)
		req := w.request(&w.ann)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := &BulkIssuesIn{Items: make([]BulkItem, items)}
			for n := range in.Items {
				in.Items[n] = BulkItem{Title: fmt.Sprintf("Issue %d does not work as it should", n), IssueFields: IssueFields{Description: Some(benchText)}}
			}
			var faults Faults
			in.Validate(&faults)
			if _, err := w.buffer.Run(CreateIssues, req, in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
				b.Fatal(err)
			}
			w.commit()
		}
	})
	b.Run("single", func(b *testing.B) {
		w := newIssueBench(b)
		w.fill(1000)
		req := w.request(&w.ann)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for n := range items {
				in := &CreateIssueIn{Title: fmt.Sprintf("Issue %d does not work as it should", n), IssueFields: IssueFields{Description: Some(benchText)}}
				if _, err := w.buffer.Run(CreateIssue, req, in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
					b.Fatal(err)
				}
			}
			w.commit()
		}
	})
}

// blockMany makes an issue that blocks as many others as it can, each with sessions that
// wait for it. If free is not 0, one in so many is not blocked.
func (w *issueFixture) blockMany(sessions, free int) (top IssueID) {
	items := []string{`{"title": "Top", "ref": "top"}`}
	for n := range maxRelations {
		relations := `{"type": "blocked_by", "ref": "top"}`
		if free > 0 && n%free == 0 {
			relations = ""
		}
		items = append(items, fmt.Sprintf(`{"title": "Issue %d does not work", "status": "todo", "description": %q, "relations": [%s]}`, n, benchText, relations))
	}
	made := w.bulk(`{"items": [` + strings.Join(items, ",") + `]}`)
	for _, t := range made.Issues[1:] {
		for n := range sessions {
			w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(*t.ID), AgentID: Some(fmt.Sprintf("agent-%d", n)), SessionOptions: SessionOptions{WhenReady: true}})
		}
	}
	return *made.Issues[0].ID
}

// finishRelease runs the timers that release the rest, each of which sets the next.
func (w *issueFixture) finishRelease() {
	v := storage.NewView(w.db, 1, w.workspace)
	for {
		w.now = w.now.Add(time.Second)
		w.runDue()
		if left, err := v.Has(releaseTable, nil); err != nil || !left {
			return
		}
	}
}

// BenchmarkCloseBlocker closes an issue for which 1,000 sessions of 200 issues wait: the
// command of the close itself, without what it leaves to timers.
func BenchmarkCloseBlocker(b *testing.B) {
	w := newIssueBench(b)
	req := w.request(&w.ann)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		top := w.blockMany(5, 0)
		b.StartTimer()
		if _, err := w.buffer.Run(PatchIssue, req, &PatchIssueIn{ID: string(top), IssuePatch: setStatus(StatusDone)}, w.now); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		w.commit()
		w.finishRelease()
		b.StartTimer()
	}
}

// BenchmarkListReady lists 50 ready issues, most others being blocked, and 50 of one status.
func BenchmarkListReady(b *testing.B) {
	w := newIssueBench(b)
	for range 25 {
		w.blockMany(0, 10)
	}
	w.buildSets()
	for _, row := range []struct {
		name   string
		filter IssueFilter
	}{
		{"ready", IssueFilter{Ready: Some(true)}},
		{"status", IssueFilter{Status: Some(StatusTodo)}},
	} {
		b.Run(row.name, func(b *testing.B) {
			in := &ListIssuesIn{Limit: 50, IssueFilter: row.filter}
			buf := make([]byte, 0, 256<<10)
			b.ReportAllocs()
			for b.Loop() {
				snap := w.db.NewSnapshot()
				v := NewView(storage.NewView(snap, 1, w.workspace), &w.ann, w.now, buf)
				v.Filter(w.sets)
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
