package storage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestOpen_TwiceIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := ok(Open(Config{Dir: dir, Logger: quiet}))(t)
	if second, err := Open(Config{Dir: dir, Logger: quiet}); err == nil {
		t.Error("a directory was opened twice")
		must(t, second.Close())
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not name the directory: %v", err)
	}
	must(t, s.Close())
	again := ok(Open(Config{Dir: dir, Logger: quiet}))(t)
	must(t, again.Close())
}

func TestClose_KeepsTheState(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Logger: quiet}
	s := ok(Open(cfg))(t)
	tx := NewTx(s.State(), 1, wsA)
	insert(t, tx, newNote(1))
	apply(t, s, tx)
	must(t, tx.Close())
	must(t, s.Close())
	s = ok(Open(cfg))(t)
	if r := verifyClean(t, s); r.Records != 1 {
		t.Errorf("%d records after a restart, want 1", r.Records)
	}
	must(t, s.Close())
}

func TestDiskUse_CountsFilesOfBefore(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Logger: quiet}
	s := ok(Open(cfg))(t)
	value := make([]byte, 2<<20) // of its own file
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(value)
	must(t, s.State().Set([]byte("a"), value, pebble.NoSync))
	must(t, s.State().Flush())
	must(t, s.Close())
	s = ok(Open(cfg))(t)
	if _, state := s.DiskUse(); state < 2<<20 {
		t.Errorf("%d bytes on disk after a restart, want 2 MiB at least", state)
	}
	must(t, s.State().Delete([]byte("a"), pebble.NoSync))
	must(t, s.State().Compact(t.Context(), []byte("a"), []byte("b"), false))
	if _, state := s.DiskUse(); state > 4<<20 {
		t.Errorf("%d bytes on disk after a deletion", state)
	}
	must(t, s.Close())
}

// The state has no log of its own. A crash at any moment leaves whole batches, in the order
// in which they were applied, up to some point. Flushed batches are there. The replication
// log is synced, and is there to the last write.
func TestCrash_StateIsAPrefix(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			crash(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func crash(t *testing.T, random *rand.Rand) {
	fs := vfs.NewCrashableMem()
	s := ok(Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet}))(t)
	tx := NewTx(s.State(), 1, wsA)
	applied, flushed, logged := 0, 0, 0
	for step := range 60 {
		applied++
		insert(t, tx, newNote(applied))
		if applied > 5 && random.IntN(3) == 0 {
			row := ok(notes.Get(tx, noteKey(applied-5)))(t)
			changed := row.Value
			changed.Status = "done"
			changed.Text = strings.Repeat("long ", 2000)
			ok(notes.Update(tx, row, &changed))(t)
		}
		must(t, tx.SetNumber(countTable, []byte("applied"), uint64(applied)))
		apply(t, s, tx)
		must(t, s.Raft().Set([]byte(fmt.Sprint(step)), nil, pebble.Sync))
		logged++
		if random.IntN(10) == 0 {
			must(t, s.FlushState())
			flushed = applied
		}
		if random.IntN(4) != 0 {
			continue
		}
		after := ok(Open(Config{
			Dir: "store", CacheBytes: 1 << 20, Logger: quiet,
			FS: fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random}),
		}))(t)
		r := verifyClean(t, after)
		v := NewView(after.State(), 1, wsA)
		got := int(ok(v.Number(countTable, []byte("applied")))(t))
		if got < flushed || got > applied || int(r.Records) != got {
			t.Errorf("after a crash: %d records, applied %d; flushed %d of %d", r.Records, got, flushed, applied)
		}
		for i := range logged {
			_, closer, err := after.Raft().Get([]byte(fmt.Sprint(i)))
			if err != nil {
				t.Fatalf("synced log entry %d of %d: %v", i, logged, err)
			}
			must(t, closer.Close())
		}
		must(t, after.Close())
	}
	must(t, tx.Close())
	must(t, s.Close())
}

func TestRepr_IsWhatIsApplied(t *testing.T) {
	t.Parallel()
	a, b := memory(t), memory(t)
	tx := begin(t, a)
	insert(t, tx, newNote(1))
	insert(t, tx, newNote(2))
	repr := bytes.Clone(tx.Repr())
	apply(t, a, tx)
	batch := b.State().NewBatch()
	must(t, batch.SetRepr(repr))
	must(t, batch.Commit(pebble.NoSync))
	must(t, batch.Close())
	for _, s := range []*Store{a, b} {
		v := NewView(s.State(), 1, wsA)
		if got := listed(t, &v, nil, status("open")); len(got) != 2 {
			t.Errorf("listed %v", got)
		}
		verifyClean(t, s)
	}
}
