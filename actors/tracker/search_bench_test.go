package tracker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// mergeAll merges everything that waits.
func (w *issueWorld) mergeAll() {
	w.Helper()
	for {
		view := storage.NewView(w.db, 1, w.workspace)
		waits, err := view.Has(searchPending, nil)
		if err != nil {
			w.Fatal(err)
		}
		if !waits {
			return
		}
		w.run(&System, mergeSearchOp, &TimerIn{Kind: timerMergeSearch})
	}
}

// phrase makes a text of words of a vocabulary in which, as in a language, few are
// frequent and many are rare.
func phrase(r *rand.Rand, zipf *rand.Zipf, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%s ", strings.Repeat(string(rune('a'+zipf.Uint64()%26)), 1)+fmt.Sprint(zipf.Uint64()))
	}
	_ = r
	return b.String()
}

// BenchmarkCreateIssue_Indexed creates issues with what they cost the search index,
// merges included, in workspaces that hold some already.
func BenchmarkCreateIssue_Indexed(b *testing.B) {
	for _, row := range []struct {
		name  string
		held  int
		title func(*rand.Rand, *rand.Zipf, int) string
	}{
		{"alike/1000", 1000, func(_ *rand.Rand, _ *rand.Zipf, i int) string { return fmt.Sprintf("Car %012d waits at the hump", i) }},
		{"alike/100000", 100_000, func(_ *rand.Rand, _ *rand.Zipf, i int) string { return fmt.Sprintf("Car %012d waits at the hump", i) }},
		{"language/1000", 1000, func(r *rand.Rand, z *rand.Zipf, _ int) string { return phrase(r, z, 6) }},
		{"language/100000", 100_000, func(r *rand.Rand, z *rand.Zipf, _ int) string { return phrase(r, z, 6) }},
	} {
		b.Run(row.name, func(b *testing.B) {
			w := newIssueBench(b)
			r := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(r, 1.1, 20, 50_000)
			req := &Request{Workspace: w.workspace, Caller: w.ann}
			n := 0
			create := func() {
				n++
				in := &CreateIssueIn{Title: row.title(r, zipf, n), IssueFields: IssueFields{Description: Some(strings.Repeat("A car rolls over the hump and finds its track. ", 6))}}
				if _, err := w.ledger.Run(CreateIssue, req, in, w.now.Add(time.Duration(n)*time.Millisecond)); err != nil {
					b.Fatal(err)
				}
				switch {
				case n%512 == 0:
					w.commit()
					w.run(&System, mergeSearchOp, &TimerIn{Kind: timerMergeSearch})
				case n%32 == 0:
					w.commit()
				}
			}
			for range row.held {
				create()
			}
			w.commit()
			if err := w.db.Flush(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				create()
			}
			w.commit()
		})
	}
}
