package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
)

func TestRestore_TakesTheLeadersPlace(t *testing.T) {
	t.Parallel()
	s := leader(t)
	for name, entries := range map[string]int{"new": 0, "lagging": 4, "of another term, and longer": 24} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, vfs.NewMem())
			if entries > 0 {
				f.lead(2, min(entries, 10))
				for range entries - 10 { // not committed
					if err := f.log.StoreLog(f.batch(2, "overruled")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := f.take(s); err != nil {
				t.Fatal(err)
			}
			if got := f.fingerprint(); got != s.sum {
				t.Errorf("the state is %s, the leader's %s", got, s.sum)
			}
			if f.m.at.applied != 27 || f.m.applied.Load() != 27 || f.m.at.epoch != 3 || f.m.at.owner != "leader" {
				t.Errorf("the position is %+v", f.m.at)
			}
			if f.m.pending.Load() != 0 || f.sums != 0 {
				t.Errorf("%d bytes are pending, of %d", f.m.pending.Load(), f.sums)
			}
			if first, last := f.log.Bounds(); first != 0 || last != 0 {
				t.Errorf("the log is %d to %d", first, last)
			}
			if f.outran != (entries > 20) {
				t.Errorf("Raft's member has to begin anew: %v", f.outran)
			}
			// The entries behind the snapshot come again, and then new ones. A restart at
			// any point between is sound.
			f.index = s.meta.Index
			for i := range 10 {
				l := f.batch(3, fmt.Sprintf("row %d", f.index))
				f.follow(l)
				again, err := openFollower(t, f.store)
				if err != nil {
					t.Fatalf("after %d entries: %v", i+1, err)
				}
				if want := max(27, l.Index); again.m.at.applied != want {
					t.Fatalf("after %d entries the state stands at %d", i+1, again.m.at.applied)
				}
			}
			// This node's own snapshot, of an earlier position than the state.
			f.snapshot(3)
			if _, err := openFollower(t, f.store); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A snapshot that comes again is refused: its install would delete the log, with the entries that came
// after it. An older one does not take the place of a newer one, either.
func TestRestore_ARepeatedStreamChangesNothing(t *testing.T) {
	t.Parallel()
	s := leader(t)
	f := newFollower(t, vfs.NewMem())
	if err := f.take(s); err != nil {
		t.Fatal(err)
	}
	repeat := func() {
		t.Helper()
		newest, err := f.m.snapshots.Latest()
		if err != nil {
			t.Fatal(err)
		}
		sum, at := f.fingerprint(), f.m.at
		first, last := f.log.Bounds()
		if err := f.take(s); !errors.Is(err, raftstore.ErrCovered) {
			t.Errorf("it was taken: %v", err)
		}
		if got := f.fingerprint(); got != sum || f.m.at != at {
			t.Errorf("the state went from %+v to %+v", at, f.m.at)
		}
		if now, err := f.m.snapshots.Latest(); err != nil || !reflect.DeepEqual(now, newest) {
			t.Errorf("the snapshot was %+v and is %+v, %v", newest, now, err)
		}
		if from, to := f.log.Bounds(); from != first || to != last {
			t.Errorf("the log was %d to %d and is %d to %d", first, last, from, to)
		}
		if _, err := openFollower(t, f.store); err != nil {
			t.Error(err)
		}
	}
	repeat()
	f.index = s.meta.Index
	for range 9 {
		f.follow(f.batch(3, fmt.Sprintf("later %d", f.index)))
	}
	repeat()
	f.snapshot(3)
	f.follow(f.batch(3, "behind the snapshot"))
	repeat()
}

// A snapshot may end before the state that came with the one before it.
func TestRestore_ALaterSnapshotOfTheSameState(t *testing.T) {
	t.Parallel()
	l, f := newFollower(t, vfs.NewMem()), newFollower(t, vfs.NewMem())
	l.lead(3, 20)
	l.snapshot(3)
	l.lead(3, 5)
	if err := f.take(l.send()); err != nil {
		t.Fatal(err)
	}
	l.snapshot(3)
	s := l.send()
	if err := f.take(s); err != nil {
		t.Fatal(err)
	}
	newest, err := f.m.snapshots.Latest()
	if err != nil || newest == nil || newest.Index != s.meta.Index || newest.Ahead != 0 {
		t.Errorf("the snapshot is %+v, %v", newest, err)
	}
	if got := f.fingerprint(); got != s.sum || f.m.at.applied != 27 {
		t.Errorf("the state is %s at %+v, the leader's %s", got, f.m.at, s.sum)
	}
	if _, err := openFollower(t, f.store); err != nil {
		t.Fatal(err)
	}
}

func TestRestore_RefusesAndKeepsTheState(t *testing.T) {
	t.Parallel()
	s := leader(t)
	empty := newFollower(t, vfs.NewMem())
	if err := empty.m.snapshots.Adopt(raftstore.SnapshotRow{SnapshotMeta: s.meta}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]func(f *follower) error{
		"a damaged stream": func(f *follower) error {
			bad := sent{meta: s.meta, stream: bytes.Clone(s.stream)}
			bad.stream[len(bad.stream)/2] ^= 1
			return f.take(bad)
		},
		"half a stream": func(f *follower) error { return f.take(sent{meta: s.meta, stream: s.stream[:len(s.stream)/2]}) },
		"no stream":     func(f *follower) error { return f.take(sent{meta: s.meta}) },
		"a state short of its index": func(f *follower) error {
			bad := s
			bad.meta.Index = 100
			return f.take(bad)
		},
		"a state without position": func(f *follower) error { return f.take(empty.send()) },
		"something else":           func(f *follower) error { return f.m.Restore(io.NopCloser(strings.NewReader("data"))) },
		"while it is served": func(f *follower) error {
			f.m.guard.beginServing()
			return f.take(s)
		},
		"after it failed": func(f *follower) error {
			f.m.halt(errors.New("broken"))
			return f.take(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, vfs.NewMem())
			f.lead(2, 5)
			sum, at := f.fingerprint(), f.m.at
			if err := c(f); err == nil {
				t.Fatal("it was taken")
			}
			if got := f.fingerprint(); got != sum || f.m.at != at {
				t.Errorf("the state is %s at %+v, and was %s at %+v", got, f.m.at, sum, at)
			}
			again, err := openFollower(t, f.store)
			if err != nil {
				t.Fatal(err)
			}
			if list, _ := again.m.snapshots.List(); len(list) != 0 {
				t.Errorf("a snapshot was recorded: %+v", list[0])
			}
			if _, last := again.log.Bounds(); last != 6 {
				t.Errorf("the log ends at %d", last)
			}
		})
	}
}

// A snapshot of this node's own that began before a received one must neither replace the
// received one nor be counted twice.
func TestRestore_OvertakesALocalSnapshot(t *testing.T) {
	t.Parallel()
	s := leader(t)
	f := newFollower(t, vfs.NewMem())
	f.lead(2, 5)
	own, err := f.m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sink, err := f.m.snapshots.Create(1, f.m.at.applied, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.take(s); err != nil {
		t.Fatal(err)
	}
	if err := own.Persist(sink); err == nil {
		t.Error("the older snapshot was recorded")
	}
	f.m.snapshotCovered(own.(*snapshot).covered, own.(*snapshot).installs)
	if f.sums != 0 || f.m.pending.Load() != 0 {
		t.Errorf("%d bytes are pending, of %d", f.m.pending.Load(), f.sums)
	}
	if list, err := f.m.snapshots.List(); err != nil || list[0].Index != s.meta.Index {
		t.Errorf("the newest is %+v, %v", list, err)
	}
}

func TestResume_DropsALogShortOfTheSnapshot(t *testing.T) {
	t.Parallel()
	f := newFollower(t, vfs.NewMem())
	f.lead(2, 9)
	if err := f.log.DeleteRange(8, 10); err != nil {
		t.Fatal(err)
	}
	sink, err := f.m.snapshots.Create(1, 10, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.(*raftstore.SnapshotSink).Record(); err != nil {
		t.Fatal(err)
	}
	again, err := openFollower(t, f.store)
	if err != nil {
		t.Fatal(err)
	}
	again.follow(again.batch(2, "next"))
	if first, last := again.log.Bounds(); first != 11 || last != 11 {
		t.Errorf("the log is %d to %d", first, last)
	}
}

func TestFits_RefusesAStateWithoutItsLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		applied, covered, ahead, last uint64
		fits                          bool
	}{
		{0, 0, 0, 0, true}, {5, 0, 0, 5, true}, {5, 0, 0, 9, true}, {6, 0, 0, 5, false},
		{5, 5, 0, 0, true}, {4, 5, 0, 0, false}, {6, 5, 0, 0, false},
		{9, 5, 9, 0, true}, {9, 5, 9, 7, true}, {9, 5, 9, 9, true}, {12, 5, 9, 12, true},
		{8, 5, 9, 0, false}, {12, 5, 9, 11, false}, {10, 5, 9, 0, false},
	} {
		f := newFollower(t, vfs.NewMem())
		if c.covered > 0 {
			row := raftstore.SnapshotRow{SnapshotMeta: raft.SnapshotMeta{Index: c.covered, Term: 1}, Ahead: c.ahead}
			if err := f.m.snapshots.Adopt(row); err != nil {
				t.Fatal(err)
			}
		}
		for i := c.covered + 1; i <= c.last; i++ {
			if err := f.log.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.m.snapshots.CheckState(c.applied); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestInstallGuard(t *testing.T) {
	t.Parallel()
	var x installGuard
	if !x.beginServing() || x.beginInstall() {
		t.Error("replaced while it is served")
	}
	if x.endServing(); !x.beginInstall() || x.beginServing() {
		t.Error("served while it is replaced")
	}
	if x.endInstall(); !x.beginServing() {
		t.Error("not served after a replacement")
	}
}
