package actors

import (
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// benchmark is like setup, with a replicator that applies at once.
func benchmark(b *testing.B) *testEngine {
	bench := setup(b, func(c *Config) { c.OpenOnboarding = true })
	bench.local.mu.Lock()
	bench.local.instant = true
	bench.local.mu.Unlock()
	b.ReportAllocs()
	return bench
}

func BenchmarkDo_Command(b *testing.B) {
	for _, row := range []struct {
		name       string
		workspaces int64
		callers    int // per processor
	}{
		{"alone", 1, 0},
		{"one workspace, 64 callers", 1, 32},
		{"64 workspaces, 64 callers", 64, 32},
	} {
		b.Run(row.name, func(b *testing.B) {
			bench := benchmark(b)
			one := func(ws storage.ID) {
				if _, err := bench.engine.Do(request(ws), countUp, &countIn{}); err != nil {
					b.Error(err)
				}
			}
			if row.callers == 0 {
				for b.Loop() {
					one(workspaceNumber(1))
				}
				return
			}
			var n atomic.Int64
			b.SetParallelism(row.callers)
			b.RunParallel(func(pb *testing.PB) {
				ws := workspaceNumber(int(n.Add(1) % row.workspaces))
				for pb.Next() {
					one(ws)
				}
			})
			s := bench.engine.Stats()
			b.ReportMetric(float64(s.BatchCommands)/float64(s.Batches), "commands/batch")
		})
	}
}

func BenchmarkDo_Query(b *testing.B) {
	bench := benchmark(b)
	ws := workspaceNumber(1)
	bench.mustCount(ws, 1)
	req, in := request(ws), &tracker.None{}
	req.Deadline = time.Now().Add(time.Hour)
	req.Buf = make([]byte, 0, 100)
	for b.Loop() {
		if _, err := bench.engine.Do(req, readCount, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdmit_Remembered(b *testing.B) {
	bench := benchmark(b)
	mine := bench.onboard("mine")
	op := needing(tracker.Write, "issues")
	req := bench.admitted(mine.id, mine.credential, op)
	for b.Loop() {
		if err := bench.engine.Admit(req, op); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkActivate(b *testing.B) {
	bench := benchmark(b)
	ws := workspaceNumber(1)
	for b.Loop() {
		if _, err := bench.count(ws); err != nil {
			b.Fatal(err)
		}
		bench.engine.sweepOnce(func(*handle) bool { return true })
	}
}

func BenchmarkNewEngine(b *testing.B) {
	bench := benchmark(b)
	for b.Loop() {
		e, err := NewEngine(bench.engine.cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A poll of a session that is as it was, without waiting.
func BenchmarkBegin_Poll(b *testing.B) {
	bench := benchmark(b)
	mine := bench.onboard("mine")
	var issue tracker.Issue
	bench.run(mine, mine.credential, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}, &issue)
	var session tracker.DispatchedSession
	bench.run(mine, mine.credential, tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID)}, &session)
	req, in := bench.admitted(mine.id, mine.credential, tracker.PollSession), &tracker.PollSessionIn{ID: session.ID}
	req.Deadline = time.Now().Add(time.Hour)
	req.Buf = make([]byte, 0, 4096)
	req.Charge = func([]byte) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := bench.engine.Begin(req, tracker.PollSession, in); err != nil {
			b.Fatal(err)
		}
	}
}
