package storage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/internal/testkit"
)

// Lists and look-ups of one moment agree with those without the cache, while records are made, changed and deleted, one
// by one and with their workspace or shard, and made again under the same ids. Other workspaces write at the same time.
func TestRecordCache_OfOneMomentBesideDeletions(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<18)
	const all, batches = 60, 1500
	seed := testkit.Seed(t)
	quit := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			v, plain := recall(s, 1, wsA), recall(s, 1, wsA)
			plain.Recall(RecordMoment{})
			for turn := 0; ; turn++ {
				select {
				case <-quit:
					return
				default:
				}
				release := v.Settle()
				plain.db = v.db
				got, err := allNotes(v, all)
				want, wrong := allNotes(plain, all)
				if err != nil || wrong != nil || !slices.Equal(got, want) {
					t.Errorf("%v is read (%v), want %v (%v)", got, err, want, wrong)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	for i, workspace := range []ID{wsA, {0xbb, 15: 1}} {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for k := range batches {
				if i == 0 && random.IntN(100) == 0 {
					from, to := WorkspaceRange(1, workspace)
					must(t, s.ReplaceState(1, func() error { return s.State().DeleteRange(from, to, pebble.NoSync) }))
				}
				commit(t, s, workspace, func(tx *Tx) {
					if random.IntN(50) == 0 {
						must(t, tx.DeleteWorkspace())
					}
					for range 1 + random.IntN(4) {
						changeNote(t, tx, random, random.IntN(all), k)
					}
					must(t, tx.SetNumber(countTable, nil, uint64(k)))
				})
			}
		})
	}
	writers.Wait()
	close(quit)
	readers.Wait()
	if s.Records().Use().Hits == 0 {
		t.Error("no record was found in the cache")
	}
}

// changeNote makes, changes or deletes a note.
func changeNote(t testing.TB, tx *Tx, random *rand.Rand, n, batch int) {
	t.Helper()
	row := ok(notes.Get(tx, noteKey(n)))(t)
	switch {
	case row == nil:
		insert(t, tx, newNote(n))
	case random.IntN(4) == 0:
		must(t, notes.Delete(tx, row))
	default:
		changed := row.Value
		changed.Text = fmt.Sprint("batch ", batch)
		ok(notes.Update(tx, row, &changed))(t)
	}
}

// allNotes reads the notes up to a number in three ways, and a counter.
func allNotes(v *View, all int) (texts []string, err error) {
	docs := make(DocList, 0, all)
	for n := all - 1; n >= 0; n-- {
		docs = append(docs, DocOf(noteID(n)))
	}
	add := func(rec Record) { texts = append(texts, fmt.Sprint(rec.Version(), string(rec.JSON()))) }
	for _, match := range []Match{FromDocs(noteTable, &docs), status("open")} {
		err := notes.List(v, []Match{match}, nil, func(_ []byte, rec Record) (bool, error) {
			add(rec)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	for n := range all {
		if _, err := notes.Record(v, noteKey(n), func(rec Record) error { add(rec); return nil }); err != nil {
			return nil, err
		}
	}
	n, err := v.Number(countTable, nil)
	return append(texts, fmt.Sprint(n)), err
}
