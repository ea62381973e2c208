package tracker

import (
	"fmt"
	"testing"

	"switchyard/storage"
)

// BenchmarkListIssues_Restricted measures a list for a caller who is not an admin, with
// none, one of a hundred or all issues restricted by five grants each.
func BenchmarkListIssues_Restricted(b *testing.B) {
	for _, row := range []struct {
		name  string
		every int
	}{{"none", 0}, {"1%", 100}, {"all", 1}} {
		b.Run(row.name, func(b *testing.B) {
			w := newIssueBench(b)
			w.fill(1000)
			mel := w.somebody(ActorUser, "mel", w.core)
			if row.every > 0 {
				w.restrictSome(row.every)
			}
			in := &ListIssuesIn{Limit: 50}
			buf := make([]byte, 0, 128<<10)
			b.ReportAllocs()
			for b.Loop() {
				snap := w.db.NewSnapshot()
				v := NewView(storage.NewView(snap, 1, w.workspace), mel, w.now, buf)
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

// restrictSome restricts one issue of each every to mel and four others.
func (w *issueFixture) restrictSome(every int) {
	w.Helper()
	cursor, n := Opt[string]{}, 0
	for {
		page := w.list(&w.ann, ListIssuesIn{Limit: 100, Cursor: cursor})
		for _, t := range page.Issues {
			if n++; n%every != 0 {
				continue
			}
			for i := range 4 {
				w.grant(t.ID, fmt.Sprint("a", i), GranteeUser)
			}
			w.grant(t.ID, "mel", GranteeUser)
		}
		if page.NextCursor == "" {
			return
		}
		cursor = Some(page.NextCursor)
	}
}
