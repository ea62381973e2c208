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
func phrase(zipf *rand.Zipf, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%c%d ", 'a'+rune(zipf.Uint64()%26), zipf.Uint64())
	}
	return b.String()
}

// measuredTitles are titles to measure search by.
var measuredTitles = []struct {
	name  string
	title func(*rand.Zipf, int) string
}{
	{"alike", func(_ *rand.Zipf, i int) string { return fmt.Sprintf("Car %012d waits at the hump", i) }},
	{"language", func(z *rand.Zipf, _ int) string { return phrase(z, 6) }},
}

// searchableIssues makes issues, merges included; create makes one more. Also may
// change what is about to be created.
func searchableIssues(b *testing.B, held int, title func(*rand.Zipf, int) string, also ...func(*issueWorld, *CreateIssueIn)) (w *issueWorld, create func() Reply) {
	b.Helper()
	w = newIssueBench(b)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 20, 50_000)
	req := w.request(&w.ann)
	n := 0
	create = func() Reply {
		n++
		in := &CreateIssueIn{Title: title(zipf, n), IssueFields: IssueFields{Description: Some(strings.Repeat("A car rolls over the hump and finds its track. ", 6))}}
		for _, change := range also {
			change(w, in)
		}
		reply, err := w.ledger.Run(CreateIssue, req, in, w.now.Add(time.Duration(n)*time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case n%512 == 0:
			w.commit()
			w.run(&System, mergeSearchOp, &TimerIn{Kind: timerMergeSearch})
		case n%32 == 0:
			w.commit()
		}
		return reply
	}
	for range held {
		create()
	}
	w.commit()
	if err := w.db.Flush(); err != nil {
		b.Fatal(err)
	}
	return w, create
}

// BenchmarkCreateIssue_Indexed creates issues with what they cost the search index,
// merges included, in workspaces that hold some already.
func BenchmarkCreateIssue_Indexed(b *testing.B) {
	for _, text := range measuredTitles {
		for _, held := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", text.name, held), func(b *testing.B) {
				w, create := searchableIssues(b, held, text.title)
				b.ReportAllocs()
				for b.Loop() {
					create()
				}
				w.commit()
			})
		}
	}
}

// BenchmarkSimilarIssues asks for what is like one of 100,000 issues, as somebody who
// sees all of them, and as a guest who sees two thirds.
func BenchmarkSimilarIssues(b *testing.B) {
	for _, text := range measuredTitles {
		b.Run(text.name, func(b *testing.B) {
			w, create := searchableIssues(b, 100_000, text.title)
			id := decode[Issue](b, create().Body).ID
			w.commit()
			w.mergeAll()
			w.benchQuery(b, &w.ann, SimilarIssues, &SimilarIssuesIn{ID: string(id)})
		})
	}
	for _, text := range measuredTitles {
		b.Run(text.name+"/hidden", func(b *testing.B) {
			n := 0
			w, create := searchableIssues(b, 100_000, text.title, func(w *issueWorld, in *CreateIssueIn) {
				if n++; n%3 == 0 {
					in.TeamID = Some(w.secret)
				}
			})
			for i, one := range w.list(&w.gus, ListIssuesIn{Limit: 100}).Issues {
				w.grant(one.ID, []string{"gus", "mel"}[i%2], GranteeUser)
			}
			id := decode[Issue](b, create().Body).ID
			w.commit()
			w.mergeAll()
			w.benchQuery(b, &w.gus, SimilarIssues, &SimilarIssuesIn{ID: string(id)})
		})
	}
}
