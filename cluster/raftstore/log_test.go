package raftstore

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"switchyard/storage"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"switchyard/internal/testkit"
)

func logsFrom(first, last uint64) (out []*raft.Log) {
	for i := first; i <= last; i++ {
		out = append(out, &raft.Log{Index: i, Term: i / 3, Data: bytes.Repeat([]byte{byte(i)}, int(i))})
	}
	return out
}

func wantBounds(t *testing.T, s *LogStore, first, last uint64) {
	t.Helper()
	f, err1 := s.FirstIndex()
	l, err2 := s.LastIndex()
	if f != first || l != last || err1 != nil || err2 != nil {
		t.Fatalf("bounds %d..%d (%v, %v), want %d..%d", f, l, err1, err2, first, last)
	}
	// A restart reads the same.
	again, err := OpenLog(s.db, s.shard)
	if err != nil {
		t.Fatal(err)
	}
	if again.first != first || again.last != last {
		t.Fatalf("bounds on disk %d..%d, want %d..%d", again.first, again.last, first, last)
	}
	for _, index := range []uint64{0, first - 1, first, last, last + 1} {
		var l raft.Log
		err := s.GetLog(index, &l)
		if in := index != 0 && index >= first && index <= last; in != (err == nil) || !in && !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatalf("entry %d of %d..%d: %v", index, first, last, err)
		}
	}
}

func openTestLog(t *testing.T, store *storage.Store) *LogStore {
	t.Helper()
	s, err := OpenLog(store.Raft(), 7)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLogStore(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	open := func() *LogStore { return openTestLog(t, store) }
	// Rows of neighbors must not show.
	for _, shard := range []*LogStore{{db: store.Raft(), shard: 6}, {db: store.Raft(), shard: 8}} {
		if err := shard.StoreLogs(logsFrom(1, 40)); err != nil {
			t.Fatal(err)
		}
	}
	s := open()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantBounds(t, s, 0, 0)
	must(s.StoreLog(logsFrom(1, 1)[0]))
	wantBounds(t, s, 1, 1)
	must(s.StoreLogs(logsFrom(2, 30)))
	must(s.StoreLogs(nil))
	wantBounds(t, s, 1, 30)
	if err := s.StoreLogs(logsFrom(32, 33)); err == nil {
		t.Fatal("a gap was accepted")
	}
	if err := s.StoreLogs(logsFrom(30, 31)); err == nil {
		t.Fatal("an entry was overwritten")
	}
	wantBounds(t, s, 1, 30)
	must(s.DeleteRange(1, 10))
	wantBounds(t, s, 11, 30)
	must(s.DeleteRange(25, 30))
	wantBounds(t, s, 11, 24)
	must(s.StoreLogs(logsFrom(25, 26)))
	wantBounds(t, s, 11, 26)
	must(s.DeleteRange(11, 26))
	wantBounds(t, s, 0, 0)
	// An emptied log goes on wherever a restored snapshot ends.
	must(s.StoreLogs(logsFrom(100, 101)))
	wantBounds(t, s, 100, 101)
	must(open().DeleteRange(1, 100))
	wantBounds(t, open(), 101, 101)
	if !s.IsMonotonic() {
		t.Fatal("the store takes no gaps")
	}
}

func TestLogStore_KeepsEntriesWhole(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	s, err := OpenLog(store.Raft(), 1)
	if err != nil {
		t.Fatal(err)
	}
	logs := []*raft.Log{
		{Index: 1, Term: 1 << 40, Type: raft.LogConfiguration, Data: []byte("data"), Extensions: []byte("extensions"),
			AppendedAt: time.Unix(1, 2)},
		{Index: 2, Term: 0, Type: raft.LogNoop},
		{Index: 3, Term: 5, Type: raft.LogCommand, Data: make([]byte, 1<<20)},
	}
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	for _, want := range logs {
		var got raft.Log
		if err := s.GetLog(want.Index, &got); err != nil {
			t.Fatal(err)
		}
		if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) ||
			!bytes.Equal(got.Extensions, want.Extensions) || !got.AppendedAt.Equal(want.AppendedAt) {
			t.Fatalf("entry %d came back as %+v", want.Index, got)
		}
	}
}

func FuzzReadLog(f *testing.F) {
	testkit.Corpus(f)
	l := &raft.Log{Term: 300, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("ext"), AppendedAt: time.Unix(9, 9)}
	b := make([]byte, logSize(l))
	putLog(b, l)
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var l raft.Log
		if readLog(b, 1, &l) != nil {
			return
		}
		again := make([]byte, logSize(&l))
		putLog(again, &l)
		var l2 raft.Log
		if err := readLog(again, 1, &l2); err != nil || l2.Term != l.Term || !bytes.Equal(l2.Data, l.Data) ||
			!bytes.Equal(l2.Extensions, l.Extensions) {
			t.Fatalf("%+v came back as %+v, %v", l, l2, err)
		}
	})
}

func openStable(t *testing.T, store *storage.Store, shard storage.Shard) *StableStore {
	t.Helper()
	log, err := OpenLog(store.Raft(), shard)
	if err != nil {
		t.Fatal(err)
	}
	return log.Stable()
}

func TestStableStore(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	s, other := openStable(t, store, 1), openStable(t, store, 2)
	if n, err := s.GetUint64([]byte("term")); n != 0 || err != nil {
		t.Fatalf("an absent number is %d, %v", n, err)
	}
	if b, err := s.Get([]byte("vote")); b != nil || err != nil {
		t.Fatalf("an absent row is %q, %v", b, err)
	}
	for _, n := range []uint64{1, 1, 1 << 60} {
		if err := s.SetUint64([]byte("term"), n); err != nil {
			t.Fatal(err)
		}
		if got, err := s.GetUint64([]byte("term")); got != n || err != nil {
			t.Fatalf("%d came back as %d, %v", n, got, err)
		}
	}
	if err := s.Set([]byte("vote"), []byte("somebody")); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get([]byte("vote")); string(b) != "somebody" || err != nil {
		t.Fatalf("the row is %q, %v", b, err)
	}
	if _, err := s.GetUint64([]byte("vote")); err != nil { // 8 bytes are a number
		t.Fatal(err)
	}
	if b, err := other.Get([]byte("vote")); b != nil || err != nil {
		t.Fatalf("another shard sees %q, %v", b, err)
	}
}

func openTestStore(t testing.TB, fs vfs.FS, dir string) *storage.Store {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := storage.Open(storage.Config{Dir: dir, FS: fs, Logger: logger, CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestLogStore_Scan(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	s, err := OpenLog(store.Raft(), 7)
	if err != nil {
		t.Fatal(err)
	}
	all := logsFrom(5, 300)
	if err := s.StoreLogs(all); err != nil {
		t.Fatal(err)
	}
	scan := func(first, last, most uint64) (next uint64, err error) {
		next = first
		err = s.Scan(first, last, func(l *raft.Log) (bool, error) {
			want := all[next-5]
			if l.Index != next || l.Term != want.Term || !bytes.Equal(l.Data, want.Data) {
				t.Errorf("entry %d is %d of term %d with %d bytes", next, l.Index, l.Term, len(l.Data))
			}
			next++
			return next < most, nil
		})
		return next, err
	}
	for _, c := range []struct {
		first, last, most, next uint64
		missing                 bool
	}{
		{first: 5, last: 300, most: 999, next: 301},
		{first: 5, last: 300, most: 20, next: 20},
		{first: 300, last: 300, most: 999, next: 301},
		{first: 4, last: 9, most: 999, next: 4, missing: true},
		{first: 200, last: 301, most: 999, next: 200, missing: true},
	} {
		if next, err := scan(c.first, c.last, c.most); next != c.next || errors.Is(err, raft.ErrLogNotFound) != c.missing || !c.missing && err != nil {
			t.Errorf("%+v: up to %d, %v", c, next, err)
		}
	}
	if err := s.DeleteRange(5, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := scan(100, 200, 999); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("%v of an entry that was deleted", err)
	}
	if next, err := scan(101, 300, 999); err != nil || next != 301 {
		t.Errorf("up to %d, %v", next, err)
	}
	if err := store.Raft().Set(Key(7, KindLog, []byte{0, 0, 0, 0, 0, 0, 0, 150}), []byte{logFormat}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := scan(101, 300, 999); err == nil || errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("%v of a damaged entry", err)
	}
}

// Configured is never before the newest configuration in the log, and exact as far as the log was
// written since it was opened.
func TestLogStore_Configured(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	open := func() *LogStore { return openTestLog(t, store) }
	s := open()
	want := func(index uint64) {
		t.Helper()
		if got := s.Configured(); got != index {
			t.Errorf("the members are those of entry %d, want %d", got, index)
		}
	}
	add := func(first, last uint64, configurations ...int) {
		t.Helper()
		logs := logsFrom(first, last)
		for _, i := range configurations {
			logs[i].Type = raft.LogConfiguration
		}
		if err := s.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(least, most uint64) {
		t.Helper()
		if err := s.DeleteRange(least, most); err != nil {
			t.Fatal(err)
		}
	}
	want(0)
	add(1, 5, 0, 2)
	want(3)
	add(6, 9)
	want(3)
	add(10, 12, 1)
	want(11)
	remove(1, 4) // after a snapshot
	want(11)
	remove(12, 12) // a new leader has another entry
	want(11)
	remove(10, 11)
	want(9)
	s = open() // a start does not read the log
	want(9)
	add(10, 10)
	want(9)
	remove(5, 10)
	want(4)
	add(20, 21, 1)
	want(21)
	s.forget()
	want(0)
}
