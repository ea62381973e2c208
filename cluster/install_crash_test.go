package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// crashes clones a file system before each write while it is armed. A clone is the file
// system as a crash would leave it.
type crashes struct {
	fs     *vfs.MemFS
	random *rand.Rand

	mu     sync.Mutex
	armed  bool
	clones []crashedDisk
}

type crashedDisk struct {
	before string
	fs     *vfs.MemFS
}

// MaybeError never fails an operation.
func (c *crashes) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed {
		c.clones = append(c.clones, crashedDisk{before: op.Path, fs: c.fs.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: c.random.IntN(3) * 50, RNG: c.random,
		})})
	}
	return nil
}

func (c *crashes) String() string { return "crashes" }

func (c *crashes) arm(on bool) {
	c.mu.Lock()
	c.armed = on
	c.mu.Unlock()
}

// A crash before any write of an install leaves the old state with its log, or the
// new one with its snapshot, and either goes on.
func TestRestore_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	s := leader(t)
	random := rand.New(rand.NewPCG(testkit.Seed(t), 3))
	c := &crashes{fs: vfs.NewCrashableMem(), random: random}
	f := newFollower(t, errorfs.Wrap(c.fs, c))
	f.lead(2, 9)
	old := f.fingerprint()
	c.arm(true)
	if err := f.take(s); err != nil {
		t.Fatal(err)
	}
	c.arm(false)
	if len(c.clones) < 15 {
		t.Fatalf("only %d steps", len(c.clones))
	}
	kept, taken := 0, 0
	for i, clone := range c.clones {
		t.Run(fmt.Sprintf("%d, before %s", i, clone.before), func(t *testing.T) {
			f := newFollower(t, clone.fs)
			if mark, err := f.m.snapshots.Installing(); mark != nil || err != nil {
				t.Errorf("the mark is still there, %v", err)
			}
			list, err := f.m.snapshots.List()
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				kept++
				f.replay()
				if got := f.fingerprint(); got != old {
					t.Errorf("the old state was %s and is %s", old, got)
				}
				if err := f.take(s); err != nil { // the leader tries again
					t.Fatal(err)
				}
			} else {
				taken++
				if first, last := f.log.Bounds(); list[0].Index != s.meta.Index || first != 0 || last != 0 {
					t.Errorf("snapshot %d, log %d to %d", list[0].Index, first, last)
				}
			}
			if got := f.fingerprint(); got != s.sum {
				t.Errorf("the state is %s, the leader's %s", got, s.sum)
			}
			f.index = s.meta.Index
			for range 8 {
				f.follow(f.batch(3, "later"))
			}
			if again, err := openFollower(t, f.store); err != nil || again.m.at.applied != 29 {
				t.Errorf("later it stands at %+v, %v", again.m.at, err)
			}
		})
	}
	t.Logf("%d steps: %d kept the old state, %d took the new one", len(c.clones), kept, taken)
	if kept == 0 || taken == 0 {
		t.Error("one side was never seen")
	}
}

// replay applies the log's entries behind the state, as Raft does at a start.
func (f *follower) replay() {
	f.t.Helper()
	_, last := f.log.Bounds()
	for i := f.m.at.applied + 1; i <= last; i++ {
		var l raft.Log
		if err := f.log.GetLog(i, &l); err != nil {
			f.t.Fatal(err)
		}
		f.m.Apply(&l)
	}
	f.index = last
}

// A full disk while a snapshot is received leaves the old state, and a later try
// succeeds.
func TestRestore_AFullDiskAtEveryStep(t *testing.T) {
	t.Parallel()
	s := leader(t)
	for n := int32(0); ; n++ {
		disk := &fullDisk{}
		f := newFollower(t, errorfs.Wrap(vfs.NewMem(), disk))
		f.lead(2, 5)
		sum := f.fingerprint()
		disk.fillAfter(n)
		if err := f.take(s); err == nil {
			if n < 4 {
				t.Errorf("only %d writes", n)
			}
			return
		} else if !errors.Is(err, errFull) {
			t.Fatalf("after %d writes it gave %v", n, err)
		}
		if got := f.fingerprint(); got != sum {
			t.Fatalf("after %d writes the state is %s and was %s", n, got, sum)
		}
		disk.fillAfter(-1)
		if _, err := openFollower(t, f.store); err != nil {
			t.Fatal(err)
		}
		if err := f.take(s); err != nil {
			t.Fatal(err)
		}
		if got := f.fingerprint(); got != s.sum {
			t.Fatalf("after %d writes and once more the state is %s, the leader's %s", n, got, s.sum)
		}
	}
}

var errFull = errors.New("no space left")

// fullDisk fails writes into the directory of received snapshots.
type fullDisk struct {
	mu   sync.Mutex
	left int32 // writes until it is full; negative: never
	full bool
}

func (d *fullDisk) fillAfter(writes int32) {
	d.mu.Lock()
	d.left, d.full = writes, writes >= 0
	d.mu.Unlock()
}

// MaybeError fails operations that need space.
func (d *fullDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileSync:
	default:
		return nil
	}
	if !strings.Contains(op.Path, "export") {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.full {
		return nil
	}
	if d.left--; d.left < 0 {
		return errFull
	}
	return nil
}

func (d *fullDisk) String() string { return "full disk" }

// An ingest that fails leaves no mark. With a mark, a state that reached the same position
// by its log would look like the state to be put in place.
func TestRestore_AFailedIngestLeavesNoMark(t *testing.T) {
	t.Parallel()
	s := leader(t)
	opened := 0
	f := newFollower(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpOpen || !strings.HasSuffix(op.Path, ".sst") || !strings.Contains(op.Path, "export") {
			return nil
		}
		if opened++; opened == 3 { // proved, looked at, ingested
			return errFull
		}
		return nil
	})))
	f.lead(2, 5)
	if err := f.take(s); !errors.Is(err, errFull) || opened != 3 {
		t.Fatalf("opened %d times, it gave %v", opened, err)
	}
	if mark, err := f.m.snapshots.Installing(); mark != nil || err != nil {
		t.Errorf("the mark is there, %v", err)
	}
	for range 30 {
		f.follow(f.batch(2, "row"))
	}
	again, err := openFollower(t, f.store)
	if err != nil {
		t.Fatal(err)
	}
	if _, last := again.log.Bounds(); last != 36 {
		t.Errorf("the log ends at %d", last)
	}
}
