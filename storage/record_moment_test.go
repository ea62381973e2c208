package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// A settled view finds the records that are kept, and of those that were written since what they were. What it reads of
// them it doesn't keep.
func TestRecordCache_OfOneMoment(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	put(t, s, wsA, 1, "old")
	put(t, s, wsA, 2, "same")
	v, settled := recall(s, 1, wsA), recall(s, 1, wsA)
	want := func(v *View, n int, want string) {
		t.Helper()
		for range 3 {
			if got := shown(t, v, n); got != want {
				t.Fatalf("note %d is %q, want %q", n, got, want)
			}
		}
	}
	want(v, 1, "old")
	want(v, 2, "same")
	release := settled.Settle()
	before := s.Records().Use()
	want(settled, 1, "old")
	if use := s.Records().Use(); use.Hits < before.Hits+3 {
		t.Errorf("a settled view found %d of 3 in the cache", use.Hits-before.Hits)
	}
	put(t, s, wsA, 1, "new")
	want(settled, 1, "old")
	want(v, 1, "new")
	want(settled, 1, "old")
	want(settled, 2, "same")
	want(v, 1, "new")
	must(t, release())
	want(settled, 1, "new")
}

// A moment that is taken while a record is being written is one before that.
func TestRecordCache_MomentWithinAWrite(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	put(t, s, wsA, 1, "old")
	v := recall(s, 1, wsA)
	key := append(Key(nil), v.fullKey(noteTable, noteKey(1))...)
	writes := []uint64{s.Records().begin(key)}
	settled := recall(s, 1, wsA)
	release := settled.Settle()
	put(t, s, wsA, 1, "new") // as the rest of that write
	s.Records().end(writes)
	for range 3 { // the new one is kept now
		shown(t, v, 1)
	}
	hits := s.Records().Use().Hits
	if shown(t, v, 1) != "new" || s.Records().Use().Hits == hits {
		t.Fatal("the new record is not kept")
	}
	if got := shown(t, settled, 1); got != "old" {
		t.Errorf("the moment has %q", got)
	}
	must(t, release())
}

// Lists see all of a batch or nothing, also of records that others keep meanwhile, and what a list without the cache
// sees.
func TestRecordCache_ListsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<18)
	const all, batches, most = 40, 400, 200_000
	commit(t, s, wsA, func(tx *Tx) {
		for n := range all {
			insert(t, tx, newNote(n))
		}
	})
	texts := func(v *View, match func() Match, each func(n int, text string)) error {
		return notes.List(v, []Match{match()}, nil, func(pk []byte, rec Record) (bool, error) {
			var n note
			err := json.Unmarshal(rec.JSON(), &n)
			each(int(descID(pk)[3]), n.Text)
			return true, err
		})
	}
	docs := func() Match {
		d := make(DocList, 0, all)
		for n := all - 1; n >= 0; n-- {
			d = append(d, DocOf(noteID(n)))
		}
		return FromDocs(noteTable, &d)
	}
	matches := []func() Match{docs, func() Match { return status("open") }}
	var readers sync.WaitGroup
	quit := make(chan struct{})
	for i := range 4 {
		readers.Go(func() {
			v, plain := recall(s, 1, wsA), recall(s, 1, wsA)
			plain.Recall(RecordMoment{})
			for turn := 0; ; turn++ {
				select {
				case <-quit:
					return
				default:
				}
				match := matches[turn%2]
				var release func() error
				if settles := (turn/2+i)%2 == 0; settles {
					release = v.Settle()
				}
				var got, want []string
				err := texts(v, match, func(n int, text string) { got = append(got, fmt.Sprint(n, " ", text)) })
				if release != nil && err == nil {
					plain.db = v.db
					err = texts(plain, match, func(n int, text string) { want = append(want, fmt.Sprint(n, " ", text)) })
				}
				if release != nil {
					err = errors.Join(err, release())
				}
				if err != nil || len(got) != all || want != nil && !slices.Equal(got, want) {
					t.Errorf("the list has %v, want %v (%v)", got, want, err)
					return
				}
				// Each batch writes a note of the first half and the one that is half of all behind it.
				byNote := map[string]string{}
				for _, line := range got {
					var n, batch int
					if k, _ := fmt.Sscanf(line, "%d batch %d", &n, &batch); k < 2 {
						continue
					}
					half := fmt.Sprint(n % (all / 2))
					if other, ok := byNote[half]; ok && other != fmt.Sprint(batch) {
						t.Errorf("a list has batch %d of one note and %s of the other", batch, other)
						return
					}
					byNote[half] = fmt.Sprint(batch)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; (i < batches || s.Records().Use().Hits < 2000) && i < most && !t.Failed(); i++ {
		n := random.IntN(all / 2)
		commit(t, s, wsA, func(tx *Tx) {
			for _, n := range []int{n, n + all/2} {
				row := ok(notes.Get(tx, noteKey(n)))(t)
				changed := row.Value
				changed.Text = fmt.Sprintf("batch %d", i)
				ok(notes.Update(tx, row, &changed))(t)
			}
		})
	}
	close(quit)
	readers.Wait()
	if use := s.Records().Use(); use.Hits == 0 {
		t.Error("no list found a record in the cache")
	}
}
