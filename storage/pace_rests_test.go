package storage

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowFile takes a millisecond for each write.
type slowFile struct{ vfs.File }

func (slowFile) Write(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return len(b), nil
}

// restingWrites returns how long a compaction takes that writes so often to two files in turns.
func restingWrites(t *testing.T, writes int, set func(*rests)) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		r := rests{every: urgencyEvery, short: func() bool { return false }, closing: closing}
		at(&r, easyLevels)
		set(&r)
		files := [2]restingFile{{slowFile{}, &r}, {slowFile{}, &r}}
		began := time.Now()
		for i := range writes {
			if _, err := files[i%2].Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		took = time.Since(began)
	})
	return took
}

// at has compactions rest as with a number of sublevels.
func at(r *rests, sublevels int32) {
	wanted := func() float64 { return compactionShare(sublevels) }
	r.wanted.Store(&wanted)
}

func TestCompaction_RestsAsLongAsItMay(t *testing.T) {
	t.Parallel()
	const writes = 1000
	const work = writes * time.Millisecond
	for _, c := range []struct {
		name        string
		set         func(*rests)
		least, most time.Duration
	}{
		{"while level 0 is low", func(*rests) {}, 5 * work / 2, 7 * work / 2},
		{"half as long halfway", func(r *rests) { at(r, (easyLevels+urgentLevels)/2) }, 3 * work / 2, 5 * work / 2},
		{"not with many sublevels", func(r *rests) { at(r, urgentLevels) }, work, work},
		{"not on a disk that is short of space", func(r *rests) { r.short = func() bool { return true } }, work, work},
		{"not before the instance is open", func(r *rests) { r.wanted.Store(nil) }, work, work},
		{"not while the store closes", func(r *rests) {
			closed := make(chan struct{})
			close(closed)
			r.closing = closed
		}, work, work},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if took := restingWrites(t, writes, c.set); took < c.least || took > c.most {
				t.Errorf("%d writes of 1 ms took %s, want %s to %s", writes, took, c.least, c.most)
			}
		})
	}
}

// The urgency is looked up again while compactions go on.
func TestCompaction_HurriesWhenLevel0Grows(t *testing.T) {
	t.Parallel()
	levels := int32(0)
	took := restingWrites(t, 2000, func(r *rests) {
		grows := func() float64 { levels += 2; return compactionShare(levels) }
		r.wanted.Store(&grows)
	})
	if took > 2*time.Second+6*urgencyEvery*urgentLevels {
		t.Errorf("2,000 writes of 1 ms took %s although level 0 grew", took)
	}
	if levels < urgentLevels {
		t.Errorf("level 0 was counted to %d only", levels)
	}
}

// categories notes the categories of the tables that are made.
type categories struct {
	vfs.FS
	mu   sync.Mutex
	seen map[vfs.DiskWriteCategory]bool
}

func (c *categories) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		c.mu.Lock()
		c.seen[category] = true
		c.mu.Unlock()
	}
	return c.FS.Create(name, category)
}

// A flush rests as long as it worked, until another memtable is full.
func TestFlush_RestsWhileMemTablesAreFree(t *testing.T) {
	t.Parallel()
	const writes = 1000
	const work = writes * time.Millisecond
	memTables := int64(easyMemTables)
	count := func(r *rests) {
		wanted := func() float64 { return flushRest(memTables) }
		r.wanted.Store(&wanted)
	}
	if took := restingWrites(t, writes, count); took < 3*work/2 || took > 5*work/2 {
		t.Errorf("%d writes of 1 ms took %s beside a free memtable", writes, took)
	}
	memTables++
	if took := restingWrites(t, writes, count); took != work {
		t.Errorf("%d writes of 1 ms took %s while another memtable is full", writes, took)
	}
}

// Callers who wait for a flush don't wait for its rests.
func TestFlush_HurriesForCallers(t *testing.T) {
	t.Parallel()
	s := memory(t)
	p := &pacer{name: stateDir}
	p.watch(s.State())
	wanted := *p.flushes.wanted.Load()
	if share := wanted(); share != flushShare {
		t.Errorf("a flush rests %v times as long as it works", share)
	}
	must(t, p.hurried(func() error {
		if share := wanted(); share != 0 {
			t.Errorf("a flush that a caller waits for rests %v times as long as it works", share)
		}
		return nil
	}))
}

// Pebble might name a category otherwise in another version, and nothing would rest.
func TestRests_CategoriesArePebbles(t *testing.T) {
	t.Parallel()
	fs := &categories{FS: vfs.NewMem(), seen: map[vfs.DiskWriteCategory]bool{}}
	s := ok(Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet}))(t)
	defer func() { must(t, s.Close()) }()
	for range 2 {
		for _, key := range []string{"a", "b"} {
			must(t, s.Raft().Set([]byte(key), []byte(key), pebble.Sync))
		}
		must(t, s.Raft().Flush())
	}
	must(t, s.Raft().Compact(t.Context(), []byte("a"), []byte("c"), false))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !fs.seen[compactionCategory] || !fs.seen[flushCategory] || len(fs.seen) != 2 {
		t.Errorf("the tables of a flush and a compaction are of the categories %v, want %q and %q", fs.seen, flushCategory, compactionCategory)
	}
}
