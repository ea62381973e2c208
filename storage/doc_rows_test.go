package storage

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Docs with and without a record, next to each other and far from each other, give the records of those
// that have one.
func TestFromDocs(t *testing.T) {
	t.Parallel()
	const all = 120
	random := rand.New(rand.NewPCG(1, 2))
	s := memory(t)
	tx := begin(t, s)
	var stored []int // newest first
	for n := all; n > 0; n-- {
		if random.IntN(4) == 0 {
			continue
		}
		note := newNote(n)
		if random.IntN(2) == 0 {
			note.Status = "done"
		}
		insert(t, tx, note)
		stored = append(stored, n)
	}
	apply(t, s, tx)
	done := listed(t, tx, nil, status("done"))
	for range 500 {
		var docs DocList
		var want, wantDone []int
		every := 1 + random.IntN(6)
		near := random.IntN(all) // all docs up from here, as of a search's newest issues
		after, none := random.IntN(all+1), random.IntN(2) == 0
		for n := all; n > 0; n-- {
			if n < near && random.IntN(every) > 0 {
				continue
			}
			docs = append(docs, DocOf(noteID(n)))
			if !slices.Contains(stored, n) || !none && n >= after {
				continue
			}
			want = append(want, n)
			if slices.Contains(done, n) {
				wantDone = append(wantDone, n)
			}
		}
		var key []byte
		if !none {
			key = noteKey(after)
		}
		again := slices.Clone(docs)
		if got := listed(t, tx, key, FromDocs(notes.ID, &docs)); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		if got := listed(t, tx, key, status("done"), FromDocs(notes.ID, &again)); !slices.Equal(got, wantDone) {
			t.Fatalf("done: %v, want %v", got, wantDone)
		}
	}
}
