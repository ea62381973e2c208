package storage

import (
	"fmt"
	"slices"
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

// sized is a file system in memory that says how much of it is free.
func sized(free, total uint64) *vfs.MemFS {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: total})
	return fs
}

func TestSpace_FullBelowTheReserveUntilWellAboveIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 1000 << 20 // the reserve is 200 MiB
		fs := sized(total, total)
		s := newSpace(fs, "", quiet)
		var told []bool
		s.OnFull(func(full bool) { told = append(told, full) })
		s.watch(0)
		defer s.stopWatching()
		for i, step := range []struct {
			free uint64 // MiB
			full bool
		}{{900, false}, {201, false}, {199, true}, {201, true}, {249, true}, {250, false}, {201, false}, {0, true}, {1000, false}} {
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: step.free << 20, TotalBytes: total})
			pass(longestLook)
			synctest.Wait()
			if s.Full() != step.full || s.Free() != step.free<<20 || s.Reserve() != total/5 {
				t.Errorf("step %d: with %d MiB free: full %t, free %d, reserve %d", i, step.free, s.Full(), s.Free(), s.Reserve())
			}
		}
		if want := []bool{true, false, true, false}; !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	})
}

func TestSpace_TellsHowShortItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, reserve uint64 // MiB
		want          Shortage
	}{
		{201, 200, Ample}, {199, 200, Short}, {100, 200, Short}, {99, 200, Scarce}, {50, 200, Scarce}, {49, 200, Spent}, {0, 200, Spent},
		{128, 10_000, Short}, {127, 10_000, Scarce}, {63, 10_000, Spent},
	} {
		s := newSpace(sized(c.free<<20, 100<<30), "", quiet)
		s.asked = c.reserve << 20
		s.check()
		if got := s.Shortage(); got != c.want {
			t.Errorf("%d MiB free of a reserve of %d: shortage %d, want %d", c.free, c.reserve, got, c.want)
		}
	}
}

// Half of what is left when space counts as spent may be taken for the owners of shards.
func TestSpace_SparesSomeWhenItIsSpent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ free, reserve, want uint64 }{ // MiB
		{49, 200, 24}, {25, 200, 0}, {0, 200, 0}, {63, 10_000, 31}, {32, 10_000, 0}, {5, 10_000, 0},
	} {
		s := newSpace(sized(c.free<<20, 100<<30), "", quiet)
		s.asked = c.reserve << 20
		s.check()
		if got := s.SpentSpare(); s.Shortage() != Spent || got != c.want<<20 {
			t.Errorf("%d MiB free of a reserve of %d: %d bytes to spare, want %d MiB", c.free, c.reserve, got, c.want)
		}
	}
}

func TestSpace_LooksOftenWhenItGetsTight(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]time.Duration{
		100 << 30: longestLook,
		768 << 20: time.Second / 2, // 512 MiB above the reserve
		257 << 20: shortestLook,
		10 << 20:  fullLook,
	} {
		s := newSpace(sized(free, 100<<30), "", quiet)
		if got, measured := s.check(); !measured || got != want {
			t.Errorf("with %d MiB free the next look is after %s, want %s", free>>20, got, want)
		}
	}
	s := newSpace(vfs.NewMem(), "", quiet)
	if _, measured := s.check(); measured || s.Full() {
		t.Error("a file system that can't be measured was")
	}
}

func TestSpace_AsksForSpaceBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := sized(401<<20, 1000<<20)
		s := newSpace(fs, "", quiet)
		asked := 0
		s.OnLow(func() { asked++ })
		s.watch(0)
		defer s.stopWatching()
		expect := func(free uint64, least, most int) {
			t.Helper()
			asked = 0
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free << 20, TotalBytes: 1000 << 20})
			pass(10 * lowEvery)
			synctest.Wait()
			if asked < least || asked > most {
				t.Errorf("with %d MiB free asked %d times, want %d to %d", free, asked, least, most)
			}
		}
		expect(401, 0, 0)
		expect(399, 9, 11)
		expect(100, 9, 12)
		expect(900, 0, 1)
	})
}

// pass lets time pass inside a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// onlyWithoutBallast is a file system that is full to the last byte while its
// ballast is there, once on is set.
func onlyWithoutBallast(on *atomic.Bool, fs *vfs.MemFS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !on.Load() || op.Kind != errorfs.OpFileWrite {
			return nil
		}
		if _, err := fs.Stat("store/ballast"); err == nil {
			return syscall.ENOSPC
		}
		return nil
	}))
}

func TestStore_TheBallastSavesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	var taken atomic.Bool
	mem := sized(900<<20, 1000<<20)
	s := ok(Open(Config{Dir: "store", FS: onlyWithoutBallast(&taken, mem), CacheBytes: 1 << 20, Logger: quiet}))(t)
	changes := make(chan bool, 8)
	s.Space().OnFull(func(full bool) { changes <- full })
	s.Watch(0)
	if _, err := mem.Stat("store/ballast"); err != nil {
		t.Fatal(err)
	}
	must(t, s.Raft().Set([]byte("before"), nil, pebble.Sync))

	taken.Store(true)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 0, TotalBytes: 1000 << 20})
	must(t, s.Raft().Set([]byte("under way"), nil, pebble.Sync))
	if !s.Space().Full() {
		t.Error("the disk does not count as full after a write met its end")
	}
	if full := <-changes; !full {
		t.Error("told that the disk has space")
	}
	if _, err := mem.Stat("store/ballast"); err == nil {
		t.Error("the ballast is still there")
	}

	taken.Store(false)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 900 << 20, TotalBytes: 1000 << 20})
	if full := <-changes; full || s.Space().Full() {
		t.Error("the disk counts as full though it has space")
	}
	if _, err := mem.Stat("store/ballast"); err != nil {
		t.Errorf("the ballast was not taken again: %v", err)
	}
	must(t, s.Close())
}

func TestOpen_OnAFullDisk(t *testing.T) {
	t.Parallel()
	fs := sized(900<<20, 1000<<20)
	open := func() (*Store, error) {
		return Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet})
	}
	s := ok(open())(t)
	s.Watch(0)
	must(t, s.Close())
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 3 << 20, TotalBytes: 1000 << 20})
	_, err := open()
	if err == nil || !strings.Contains(err.Error(), "the disk that holds store is full") {
		t.Errorf("opened on a full disk: %v", err)
	}
	if _, err := fs.Stat("store/ballast"); err == nil {
		t.Error("the ballast was not given up")
	}
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 70 << 20, TotalBytes: 1000 << 20})
	s = ok(open())(t)
	s.Watch(0)
	if !s.Space().Full() {
		t.Error("not full below the reserve")
	}
	must(t, s.Close())
}

// filledByTransfers is a file system that is full while files of a transfer are there.
type filledByTransfers struct{ *vfs.MemFS }

func (f filledByTransfers) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	usage, err := f.MemFS.GetDiskUsage(path)
	if _, missing := f.Stat("store/export/in-1-1/0.sst"); missing == nil {
		usage.AvailBytes = 3 << 20
	}
	return usage, err
}

// The leftovers of an import that a crash ended do not keep a node from starting, and a process that still runs
// keeps its own.
func TestOpen_OnADiskFullOfTransfers(t *testing.T) {
	t.Parallel()
	fs := filledByTransfers{sized(900<<20, 1000<<20)}
	open := func() (*Store, error) {
		return Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet})
	}
	s := ok(open())(t)
	must(t, fs.MkdirAll("store/export/in-1-1", 0o700))
	file := ok(fs.Create("store/export/in-1-1/0.sst", vfs.WriteCategoryUnspecified))(t)
	must(t, file.Close())
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "the disk that holds store is full") {
		t.Errorf("opened twice: %v", err)
	}
	_ = ok(fs.Stat("store/export/in-1-1/0.sst"))(t)
	must(t, s.Close())
	s = ok(open())(t)
	must(t, s.Close())
}

func TestStore_CompactRaftGivesSpaceBack(t *testing.T) {
	t.Parallel()
	s := memory(t)
	value := []byte(strings.Repeat("x", 1<<20))
	for i := range 40 {
		must(t, s.Raft().Set([]byte(fmt.Sprint(i)), value, pebble.NoSync))
	}
	must(t, s.Raft().DeleteRange([]byte("0"), []byte("9"), pebble.NoSync))
	must(t, s.Raft().Flush())
	must(t, s.CompactRaft(t.Context()))
	if tables := s.Raft().Metrics().Total(); tables.TablesSize > 4<<20 {
		t.Errorf("%d bytes are left", tables.TablesSize)
	}
}
