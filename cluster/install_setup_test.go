package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// follower is a state machine with its log and snapshots, fed by hand.
type follower struct {
	*machineTest
	log    *raftstore.LogStore
	sums   int64 // reported to the compactor
	outran bool
}

// openFollower opens a shard of a store, as openGroup does.
func openFollower(t testing.TB, store *storage.Store) (*follower, error) {
	f := &follower{machineTest: &machineTest{t: t, store: store}}
	f.reopen()
	s := openTestSnapshots(t, store, shard1)
	f.log, f.m.snapshots = s.Log, s
	f.m.grown = func(added, _ int64) { f.sums += added }
	f.m.shrunk = func(covered int64) { f.sums -= covered }
	f.m.needsReopen = func() { f.outran = true }
	f.index = f.m.at.applied
	if err := s.Resume(f.m.at.applied); err != nil {
		return nil, err
	}
	return f, s.CheckState(f.m.at.applied)
}

func newFollower(t testing.TB, fs vfs.FS) *follower {
	t.Helper()
	store := openStore(t, fs, "node")
	t.Cleanup(func() { _ = store.Close() })
	f, err := openFollower(t, store)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// follow appends entries to the log and applies them.
func (f *follower) follow(logs ...*raft.Log) {
	f.t.Helper()
	if err := f.log.StoreLogs(logs); err != nil {
		f.t.Fatal(err)
	}
	for _, result := range f.m.ApplyBatch(logs) {
		if err, ok := result.(error); ok && !errors.Is(err, errReplayed) {
			f.t.Fatal(err)
		}
	}
}

// lead makes a log of claim and n rows, in a term.
func (f *follower) lead(term uint64, n int) {
	f.t.Helper()
	f.follow(f.machineTest.log(term, appendEntry(nil, entryClaim, term, "leader")))
	for range n {
		f.follow(f.batch(term, fmt.Sprintf("row %d", f.index)))
	}
}

// snapshot records a snapshot of this node's own and truncates the log.
func (f *follower) snapshot(term uint64) {
	f.t.Helper()
	s, err := f.m.Snapshot()
	if err != nil {
		f.t.Fatal(err)
	}
	sink, err := f.m.snapshots.Create(1, f.m.at.applied, term, raft.Configuration{}, 1, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := s.Persist(sink); err != nil {
		f.t.Fatal(err)
	}
	if err := f.log.DeleteRange(1, f.m.at.applied); err != nil {
		f.t.Fatal(err)
	}
}

// sent is a snapshot on its way.
type sent struct {
	meta   raft.SnapshotMeta
	stream []byte
	sum    storage.Fingerprint
}

func (f *follower) send() sent {
	f.t.Helper()
	list, err := f.m.snapshots.List()
	if err != nil || len(list) != 1 {
		f.t.Fatalf("%d snapshots, %v", len(list), err)
	}
	meta, out, err := f.m.snapshots.Open(list[0].ID)
	if err != nil {
		f.t.Fatal(err)
	}
	stream, err := io.ReadAll(out)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		f.t.Fatal(err)
	}
	if int64(len(stream)) != meta.Size {
		f.t.Fatalf("%d bytes, announced %d", len(stream), meta.Size)
	}
	return sent{meta: *meta, stream: stream, sum: f.fingerprint()}
}

func (f *follower) fingerprint() storage.Fingerprint {
	f.t.Helper()
	sum, err := storage.FingerprintOf(context.Background(), f.store.State(), shard1)
	if err != nil {
		f.t.Fatal(err)
	}
	return sum
}

// take receives a snapshot as Raft does.
func (f *follower) take(s sent) error {
	sink, err := f.m.snapshots.Create(s.meta.Version, s.meta.Index, s.meta.Term, s.meta.Configuration, s.meta.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sink, bytes.NewReader(s.stream)); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	meta, source, err := f.m.snapshots.Open(sink.ID())
	if err != nil {
		return err
	}
	if meta.Index != s.meta.Index {
		return fmt.Errorf("opened %d", meta.Index)
	}
	return f.m.Restore(source)
}

// leader has truncated its log after 20 rows, and written 5 more.
func leader(t testing.TB) sent {
	t.Helper()
	f := newFollower(t, vfs.NewMem())
	f.lead(3, 20)
	f.snapshot(3)
	f.lead(3, 5)
	return f.send()
}

func openTestSnapshots(t testing.TB, store *storage.Store, shard storage.Shard) *raftstore.SnapshotStore {
	t.Helper()
	log, err := raftstore.OpenLog(store.Raft(), shard)
	if err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	return raftstore.NewSnapshotStore(store, log, func() int64 { return 1 }, quit)
}
