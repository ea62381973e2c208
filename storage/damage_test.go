package storage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A damaged block fails the reads that need it, and no others.
func TestStore_DamagedBlock(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Logger: quiet}
	s := ok(Open(cfg))(t)
	tx := NewTx(s.State(), 1, wsA)
	const rows = 2000
	for n := range rows {
		insert(t, tx, newNote(n))
	}
	apply(t, s, tx)
	must(t, tx.Close())
	must(t, s.Close())
	tables := ok(filepath.Glob(filepath.Join(cfg.Dir, "state", "*.sst")))(t)
	if len(tables) == 0 {
		t.Fatal("there are no tables")
	}
	for _, table := range tables {
		text := ok(os.ReadFile(table))(t)
		text[100] ^= 1 // in the first block
		must(t, os.WriteFile(table, text, 0o600))
	}

	s = ok(Open(cfg))(t)
	view := NewView(s.State(), 1, wsA)
	damaged := 0
	for n := range rows {
		row, err := notes.Get(&view, noteKey(n))
		switch {
		case IsDamage(err):
			damaged++
		case err != nil || row == nil || row.Value.Text != newNote(n).Text:
			t.Fatalf("row %d: %+v, %v", n, row, err)
		}
	}
	if damaged == 0 || damaged > rows/2 {
		t.Errorf("%d of %d rows can't be read", damaged, rows)
	}
	must(t, s.Close())
}

// writeOverDamage opens a store with rows of three shards, of which the first block is damaged, and writes
// the rows again. opened is called before that. A compaction of both tables fails then.
func writeOverDamage(t *testing.T, opened func(*Store)) *Store {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), Logger: quiet}
	s := ok(Open(cfg))(t)
	write := func() {
		for shard := range Shard(3) {
			start, _ := WorkspaceRange(shard+1, wsA)
			for n := range 1000 {
				must(t, s.State().Set(fmt.Appendf(start[:len(start):len(start)], "%d", n), []byte(newNote(n).Text), pebble.NoSync))
			}
		}
	}
	write()
	must(t, s.Close())
	tables := ok(filepath.Glob(filepath.Join(cfg.Dir, "state", "*.sst")))(t)
	text := ok(os.ReadFile(tables[0]))(t)
	text[100] ^= 1
	must(t, os.WriteFile(tables[0], text, 0o600))

	s = ok(Open(cfg))(t)
	opened(s)
	write()
	must(t, s.FlushState())
	return s
}

// Damage that a compaction meets is reported for each shard that has rows in it, and for no other.
func TestStore_ReportsDamagedShards(t *testing.T) {
	t.Parallel()
	found := make(chan Shard, 10)
	s := writeOverDamage(t, func(s *Store) {
		s.OnDamage(func(shard Shard, cause error) {
			if !IsDamage(cause) {
				t.Errorf("shard %d: %v", shard, cause)
			}
			found <- shard
		})
	})
	if shard := <-found; shard != 1 {
		t.Errorf("shard %d is damaged, and not 1", shard)
	}
	must(t, s.Close())
	select {
	case shard := <-found:
		t.Errorf("shard %d is damaged", shard)
	default:
	}
}

// A block with rows of two shards fails the import of the second one, although what the second had there
// was deleted before, if other rows come behind.
func TestImport_OverABlockOfTwoShards(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	s, from := ok(Open(Config{Dir: whole, Logger: quiet}))(t), memory(t)
	for shard := range Shard(3) {
		for n := range 1000 {
			for _, to := range []*Store{s, from} {
				must(t, to.State().Set(rowKey(shard+1, n), []byte(newNote(n).Text), pebble.NoSync))
			}
		}
	}
	must(t, s.Close())
	rows := stream(t, from, 2)
	for at := 512; ; at += 1024 {
		cfg := Config{Dir: filepath.Join(t.TempDir(), "copy"), Logger: quiet}
		must(t, os.CopyFS(cfg.Dir, os.DirFS(whole)))
		tables := ok(filepath.Glob(filepath.Join(cfg.Dir, "state", "*.sst")))(t)
		text := ok(os.ReadFile(tables[0]))(t)
		if at >= len(text) {
			t.Fatal("no block has rows of both shards")
		}
		text[at] ^= 1
		must(t, os.WriteFile(tables[0], text, 0o600))
		s := ok(Open(cfg))(t)
		if !IsDamage(s.readShard(1, damage{})) || !IsDamage(s.readShard(2, damage{})) {
			must(t, s.Close())
			continue
		}
		start, end := ShardRange(2)
		must(t, s.State().DeleteRange(start, end, pebble.NoSync))
		must(t, s.FlushState())
		if err := receive(t, s, 2, bytes.NewReader(rows)); !IsDamage(err) {
			t.Errorf("the import ended with %v", err)
		}
		must(t, s.Close())
		return
	}
}

// A compaction that fails at damage has made no file whose creation could be put off. It is tried again
// without end, and must not keep the machine busy: in the bubble time passes only while all wait.
func TestCompaction_DamageIsNotReadAtOnceAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := writeOverDamage(t, func(*Store) {})
		const pauses = 20
		time.Sleep(pauses * tablePause)
		if n := s.State().Metrics().Compact.FailedCount; n < 2 || n > pauses+2 {
			t.Errorf("%d compactions have failed in %s", n, pauses*tablePause)
		}
		must(t, s.Close())
	})
}

// Disks return an error for a sector that they can't read.
func TestIsDamage_UnreadableSector(t *testing.T) {
	t.Parallel()
	var bad atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if bad.Load() && op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	}))
	cfg := Config{Dir: "store", FS: disk, Logger: quiet}
	s := ok(Open(cfg))(t)
	key, _ := WorkspaceRange(1, wsA)
	must(t, s.State().Set(key, []byte("value"), pebble.NoSync))
	must(t, s.Close())
	s = ok(Open(cfg))(t)
	bad.Store(true)
	if _, _, err := s.State().Get(key); !IsDamage(err) {
		t.Errorf("reading it ends with %v", err)
	}
	bad.Store(false)
	must(t, s.Close())
}
