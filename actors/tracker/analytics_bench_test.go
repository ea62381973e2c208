package tracker

import (
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// fillCycles makes n issues with 200 assignees, 20 projects and the given number of
// cycles, and closes every third one on another day.
func (w *issueFixture) fillCycles(n, cycles int) {
	w.Helper()
	req := w.request(&w.ann)
	do := func(i int, op *Op, in any) Reply {
		reply, err := w.buffer.Run(op, req, in, w.now)
		if err != nil {
			w.Fatal(err)
		}
		if i%500 == 499 {
			w.commit()
		}
		return reply
	}
	ids := make([]string, 0, n/3+1)
	for i := range n {
		reply := do(i, CreateIssue, &CreateIssueIn{Title: "Something does not work as it should", IssueFields: IssueFields{
			Description: Some("What happens, what should happen, and how to make it happen again."),
			TeamID:      Some([]TeamID{w.core, w.web, w.secret}[i%3]), Status: Some(issueStatuses[i%4]), Priority: Some(issuePriorities[i/7%4]),
			AssigneeID: Some(fmt.Sprint("assignee-", i%200)), ProjectID: Some(fmt.Sprint("project-", i%20)), CycleID: Some(fmt.Sprint("cycle-", i%cycles)),
			Estimate: Some(int64(i % 9)),
		}})
		if i%3 == 0 {
			ids = append(ids, string(decode[Issue](w, reply.Body).ID))
		}
	}
	for i, id := range ids {
		if i%1000 == 0 {
			w.now = w.now.Add(24 * time.Hour)
		}
		do(i, PatchIssue, &PatchIssueIn{ID: id, IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}})
	}
	w.commit()
	if err := w.db.Flush(); err != nil {
		w.Fatal(err)
	}
}

func (w *issueFixture) benchQuery(b *testing.B, who *Caller, op *Op, in ...any) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		snap := w.db.NewSnapshot()
		if _, err := op.RunQuery(NewView(storage.NewView(snap, 1, w.workspace), who, w.now, nil), in[i%len(in)]); err != nil {
			b.Fatal(err)
		}
		if err := snap.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIssueAnalytics(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		w := newIssueBench(b)
		w.fillCycles(n, 10)
		for _, by := range []string{"status", "teamId", "assigneeId", "cycleId"} {
			b.Run(fmt.Sprintf("%s/%d", by, n), func(b *testing.B) { w.benchQuery(b, &w.gus, IssueAnalytics, &IssueAnalyticsIn{GroupBy: by}) })
		}
	}
}

// A cycle of 10,000 issues among ten times as many.
func BenchmarkBurndown(b *testing.B) {
	w := newIssueBench(b)
	w.fillCycles(100_000, 10)
	w.benchQuery(b, &w.gus, Burndown, &BurndownIn{CycleID: "cycle-3"})
}

// An issue that is in every aggregate and in a burndown.
func BenchmarkCreateIssueInCycle(b *testing.B) {
	w := newIssueBench(b)
	w.fill(1000)
	req := w.request(&w.ann)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := &CreateIssueIn{Title: "Something does not work as it should", IssueFields: IssueFields{
			Description: Some("What happens, and what should happen."),
			AssigneeID:  Some("ann"), ProjectID: Some("yard"), CycleID: Some("c1"), Estimate: Some[int64](3),
		}}
		if _, err := w.buffer.Run(CreateIssue, req, in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
			b.Fatal(err)
		}
		if i%32 == 31 {
			w.commit()
		}
	}
	w.commit()
}
