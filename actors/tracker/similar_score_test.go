package tracker

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Scores are summed up in windows of the ordinals of a segment. In segments of several windows and of a part of
// one, and in the issues behind them, the scores are those of a search through everything.
func TestSimilarIssues_SeveralWindows(t *testing.T) {
	t.Parallel()
	const issues, indexed = 2*scoreWindow + 700, 2*scoreWindow + 600
	m := &searchModel{issueFixture: newIssueFixture(t)}
	// Each word is in every 9th issue, in every 400th, or in a few at the ends of windows.
	word := func(kind string, n int) string {
		return kind + strings.Repeat("z", n%7) + string(rune('a'+n%26)) + string(rune('a'+n/26))
	}
	req := m.request(&m.ann)
	for n := range issues {
		in := &CreateIssueIn{Title: word("nine", n%9) + " " + word("many", n%400)}
		if edge := n % scoreWindow; edge < 2 || edge > scoreWindow-3 {
			in.Description = Some("windowedge")
		}
		if n%5 == 0 {
			in.TeamID = Some(m.secret)
		}
		reply, err := m.buffer.Run(CreateIssue, req, in, m.now.Add(time.Duration(n)*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		made := decode[CreatedIssue](t, reply.Body).Issue
		m.all = append(m.all, &made)
		if n == indexed {
			m.commit()
			m.indexAll()
		}
	}
	m.commit()
	if of := m.manifest().Segments; of[0].Docs < 2*scoreWindow || len(of) < 2 {
		t.Fatalf("the segments are %+v", of)
	}
	sees := func(one *Issue) bool { return one.TeamID != m.secret }
	for _, of := range []int{1, 2, scoreWindow - 1, scoreWindow + 2, 2*scoreWindow + 1, issues - 1} {
		for who, sees := range map[*Caller]func(*Issue) bool{&m.ann: func(*Issue) bool { return true }, &m.gus: sees} {
			if !sees(m.all[of]) {
				continue
			}
			reply, err := m.ask(who, SimilarIssues, &SimilarIssuesIn{ID: string(m.all[of].ID), Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			scores := m.similar(m.all[of], sees, sees)
			var want []float64
			for _, score := range scores {
				want = append(want, score)
			}
			slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
			got := decode[SimilarList](t, reply.Body).Similar
			if len(got) != 50 {
				t.Fatalf("%d issues are like the one at %d", len(got), of)
			}
			for i, one := range got {
				if math.Abs(one.Score-want[i]) > 1e-9 || math.Abs(one.Score-scores[one.Issue.ID]) > 1e-9 {
					t.Fatalf("like %d at place %d for %s: %s with %v, which has %v; want %v", of, i, who.ID, one.Issue.ID, one.Score, scores[one.Issue.ID], want[i])
				}
			}
		}
	}
}
