package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// recalling opens a store in memory that keeps notes and counts.
func recalling(t testing.TB, bytes int64) *Store {
	t.Helper()
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: 8 << 20, RecordBytes: bytes, RecordTables: []TableID{noteTable, countTable}, ListedTables: []TableID{noteTable}, Logger: quiet}))(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func recall(s *Store, shard Shard, workspace ID) *View {
	v := NewView(s.State(), shard, workspace)
	v.Recall(s.Records().Always())
	return &v
}

// commit changes workspace of shard 1 by a batch of its own.
func commit(t testing.TB, s *Store, workspace ID, change func(*Tx)) {
	t.Helper()
	tx := NewTx(s.State(), 1, workspace)
	change(tx)
	b := s.State().NewBatch()
	must(t, b.SetRepr(bytes.Clone(tx.Repr())))
	must(t, s.CommitState(b))
	must(t, b.Close())
	must(t, tx.Close())
}

// put writes a note of a workspace, new or again.
func put(t testing.TB, s *Store, workspace ID, n int, text string) {
	t.Helper()
	commit(t, s, workspace, func(tx *Tx) {
		v := newNote(n)
		v.Text = text
		row := ok(notes.Get(tx, noteKey(n)))(t)
		if row == nil {
			insert(t, tx, v)
			return
		}
		_, err := notes.Update(tx, row, v)
		must(t, err)
	})
}

// shown returns the text of a note, or "" if there is none.
func shown(t testing.TB, v *View, n int) string {
	t.Helper()
	row := ok(notes.Get(v, noteKey(n)))(t)
	if row == nil {
		return ""
	}
	return row.Value.Text
}

func TestRecordCache_Exact(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	v := recall(s, 1, wsA)
	wantText := func(n int, want string) {
		t.Helper()
		for range 3 { // kept from the second look-up on
			if got := shown(t, v, n); got != want {
				t.Fatalf("note %d is %q, want %q", n, got, want)
			}
		}
	}
	wantText(1, "")
	put(t, s, wsA, 1, "new")
	wantText(1, "new")
	if u := s.Records().Use(); u.Hits == 0 || u.Bytes == 0 {
		t.Fatalf("nothing was kept: %+v", u)
	}
	put(t, s, wsA, 1, "changed")
	wantText(1, "changed")

	// A transaction reads past the cache, and a settled view reads its moment.
	tx := begin(t, s)
	row := ok(notes.Get(tx, noteKey(1)))(t)
	_, err := notes.Update(tx, row, newNote(1))
	must(t, err)
	if got := ok(notes.Get(tx, noteKey(1)))(t).Value.Text; got != newNote(1).Text {
		t.Errorf("a transaction reads %q of its own write", got)
	}
	release := v.Settle()
	put(t, s, wsA, 1, "later")
	if got := shown(t, v, 1); got != "changed" {
		t.Errorf("a settled view reads %q", got)
	}
	must(t, release())
	wantText(1, "later")

	commit(t, s, wsA, func(tx *Tx) {
		must(t, notes.Delete(tx, ok(notes.Get(tx, noteKey(1)))(t)))
	})
	wantText(1, "")
	if u := s.Records().Use(); u.Bytes != 0 {
		t.Errorf("%d bytes are kept of nothing", u.Bytes)
	}
}

// A counter is kept like a record, and so is its absence. Each look-up sees the last write.
func TestRecordCache_Counters(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	v := recall(s, 1, wsA)
	subject := []byte("n")
	wantNumber := func(want uint64) {
		t.Helper()
		for range 3 { // kept from the second look-up on
			if n := ok(v.Number(countTable, subject))(t); n != want {
				t.Fatalf("the counter is %d, want %d", n, want)
			}
		}
	}
	for _, n := range []uint64{0, 7, 8, 0, 1} {
		if n > 0 {
			commit(t, s, wsA, func(tx *Tx) { must(t, tx.SetNumber(countTable, subject, n)) })
		} else {
			commit(t, s, wsA, func(tx *Tx) { must(t, tx.DeleteValue(countTable, subject)) })
		}
		before := s.Records().Use().Hits
		wantNumber(n)
		if hits := s.Records().Use().Hits - before; hits == 0 {
			t.Errorf("counter %d was not kept", n)
		}
	}
	commit(t, s, wsA, func(tx *Tx) { must(t, tx.SetValue(countTable, subject, []byte("seven"))) })
	for range 3 {
		if _, err := v.Number(countTable, subject); !errors.Is(err, ErrFormat) {
			t.Fatalf("a counter of 5 bytes: %v", err)
		}
	}
}

// Two workspaces have records of the same id. Neither workspace gets the other's record.
func TestRecordCache_ByWorkspaceAndShard(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	other := ID{0xbb, 15: 1}
	put(t, s, wsA, 1, "mine")
	put(t, s, other, 1, "other's")
	for range 3 {
		for _, row := range []struct {
			shard     Shard
			workspace ID
			want      string
		}{{1, wsA, "mine"}, {1, other, "other's"}, {2, wsA, ""}} {
			if got := shown(t, recall(s, row.shard, row.workspace), 1); got != row.want {
				t.Fatalf("%v of shard %d reads %q", row.workspace, row.shard, got)
			}
		}
	}
}

// The cache drops its records when many records end at once: at the deletion of a workspace
// or of a table's rows, when a replica is dropped, and when a snapshot replaces a shard.
func TestRecordCache_Ranges(t *testing.T) {
	t.Parallel()
	other := ID{0xbb, 15: 1}
	table := func(id TableID) []byte {
		p := rangePrefix(1, wsA)
		return append(p[:], byte(id))
	}
	deletes := func(start, end []byte) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			b := s.State().NewBatch()
			must(t, b.DeleteRange(start, end, nil))
			must(t, s.CommitState(b))
			must(t, b.Close())
		}
	}
	for name, end := range map[string]func(*testing.T, *Store){
		"workspace": deletes(WorkspaceRange(1, wsA)),
		"table":     deletes(table(noteTable), table(noteTable+1)),
		"tables":    deletes(table(noteTable-2), table(noteByStatus)),
		"replica": func(t *testing.T, s *Store) {
			from, to := ShardRange(1)
			must(t, s.ReplaceState(1, func() error { return s.State().DeleteRange(from, to, pebble.NoSync) }))
		},
		"install": func(t *testing.T, s *Store) {
			must(t, receive(t, s, 1, bytes.NewReader(stream(t, memory(t), 1))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := recalling(t, 1<<20)
			put(t, s, wsA, 1, "mine")
			put(t, s, other, 1, "other's")
			v := recall(s, 1, wsA)
			for range 3 {
				shown(t, v, 1)
			}
			end(t, s)
			if got := shown(t, v, 1); got != "" {
				t.Errorf("%q is read of what is gone", got)
			}
			put(t, s, wsA, 1, "again")
			for range 3 {
				if got := shown(t, v, 1); got != "again" {
					t.Errorf("%q is read", got)
				}
			}
		})
	}
}

// A reader never sees a record older than one that any reader has seen before, nor than
// a write that has ended. Versions grow with each write.
func TestRecordCache_Monotonic(t *testing.T) {
	t.Parallel()
	s := recalling(t, 1<<20)
	const people, writes = 3, 400
	for n := range people {
		put(t, s, wsA, n, "0")
	}
	var seen [people]atomic.Uint64
	note := func(n int, version uint64) {
		for old := seen[n].Load(); old < version && !seen[n].CompareAndSwap(old, version); old = seen[n].Load() {
		}
	}
	var readers sync.WaitGroup
	quit := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			cached, plain := recall(s, 1, wsA), recall(s, 1, wsA)
			plain.Recall(RecordMoment{})
			for {
				select {
				case <-quit:
					return
				default:
				}
				n, v := rand.IntN(people), cached
				if rand.IntN(4) == 0 {
					v = plain
				}
				before := seen[n].Load()
				var version uint64
				if _, err := notes.Record(v, noteKey(n), func(rec Record) error { version = rec.Version(); return nil }); err != nil {
					t.Error(err)
					return
				}
				if version < before {
					t.Errorf("note %d is read at version %d after %d", n, version, before)
					return
				}
				note(n, version)
			}
		})
	}
	var version [people]uint64
	for i := range writes {
		n := i % people
		put(t, s, wsA, n, fmt.Sprint(i))
		if version[n] == 0 {
			version[n] = 1
		}
		version[n]++
		note(n, version[n])
	}
	close(quit)
	readers.Wait()
}

func TestRecordCache_Bounded(t *testing.T) {
	t.Parallel()
	const budget = 64 * 2048
	s := recalling(t, budget)
	c := s.Records()
	for n := range 2000 {
		put(t, s, wsA, n, "some text")
	}
	put(t, s, wsA, 5000, string(bytes.Repeat([]byte{'x'}, 4096))) // larger than a part takes
	v := recall(s, 1, wsA)
	for range 3 {
		for n := range 2000 {
			shown(t, v, n)
			shown(t, v, n)
			shown(t, v, 5000)
		}
		if use := c.Use(); use.Bytes > budget || use.Bytes < budget/4 {
			t.Fatalf("%d bytes of %d are kept", use.Bytes, budget)
		}
	}
	sum := 0
	for i := range c.parts {
		p := &c.parts[i]
		part := 0
		for at, r := range p.clock {
			if r.at != at || p.by[r.hash] != r {
				t.Fatal("the clock and the map disagree")
			}
			part += r.size()
		}
		if part != p.bytes || len(p.by) != len(p.clock) || part > c.most {
			t.Fatalf("a part counts %d bytes of %d, at most %d", p.bytes, part, c.most)
		}
		sum += part
	}
	if int64(sum) != c.Use().Bytes {
		t.Errorf("%d bytes are counted, %d kept", c.Use().Bytes, sum)
	}
}

func BenchmarkRecordCache(b *testing.B) {
	for name, budget := range map[string]int64{"kept": 8 << 20, "pebble": 0} {
		b.Run(name, func(b *testing.B) {
			s := recalling(b, budget)
			for n := range 1000 {
				put(b, s, wsA, n, "some text")
			}
			v := recall(s, 1, wsA)
			keys := make([]Key, 1000)
			for n := range keys {
				keys[n] = noteKey(n)
			}
			for i := range 4000 {
				ok(notes.Record(v, keys[i%1000], func(Record) error { return nil }))(b)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := notes.Record(v, keys[i%1000], func(Record) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
