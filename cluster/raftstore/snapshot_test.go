package raftstore

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

func openSnapshots(t testing.TB, store *storage.Store, shard storage.Shard) *SnapshotStore {
	t.Helper()
	log, err := OpenLog(store.Raft(), shard)
	if err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	return NewSnapshotStore(store, log, func() int64 { return 1 }, quit)
}

func TestSnapshotStore(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	s := openSnapshots(t, store, 3)
	if _, _, err := s.Open("3-2-10"); err == nil {
		t.Fatal("a snapshot that is not there was opened")
	}
	voters := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}, {ID: "b", Address: "b", Suffrage: raft.Nonvoter}}}
	create := func(index uint64) *SnapshotSink {
		sink, err := s.Create(1, index, 2, voters, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sink.(*SnapshotSink)
	}
	for _, index := range []uint64{10, 20} {
		sink := create(index)
		if err := sink.Record(); err != nil {
			t.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(30).Cancel(); err != nil {
		t.Fatal(err)
	}
	if err := create(30).Close(); err == nil {
		t.Fatal("a received snapshot without a byte was taken")
	}
	if err := create(15).Record(); err == nil {
		t.Fatal("an older snapshot took the place of a newer one")
	}
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%d snapshots, %v", len(list), err)
	}
	if m := list[0]; m.Index != 20 || m.Term != 2 || m.ConfigurationIndex != 5 || len(m.Configuration.Servers) != 2 ||
		m.Configuration.Servers[1] != voters.Servers[1] || m.Version != 1 || m.ID == "" {
		t.Fatalf("came back as %+v", m)
	}
	if list, err := openSnapshots(t, store, 4).List(); len(list) != 0 || err != nil {
		t.Fatalf("another shard sees %v, %v", list, err)
	}
}

func TestSnapshotStore_TellsWhileItSends(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	s := openSnapshots(t, store, 3)
	now := int64(1)
	s.clock = func() int64 { return now }
	sink, err := s.Create(1, 10, 2, raft.Configuration{}, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.(*SnapshotSink).Record(); err != nil {
		t.Fatal(err)
	}
	if s.Sending() {
		t.Fatal("sends before anybody asked")
	}
	meta, out, err := s.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if meta.Index != 10 || meta.Size == 0 {
		t.Errorf("opened as %+v", meta)
	}
	if !s.Sending() {
		t.Error("does not send while a stream is open")
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if !s.Sending() {
		t.Error("the follower had no time to read the log")
	}
	if now += int64(sendGrace); s.Sending() {
		t.Error("sends for ever")
	}
}

// A copy that the disk has no room for is reported once, and does not keep the log.
func TestSnapshotStore_NoRoomForACopy(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 101 << 20, TotalBytes: 1000 << 20})
	store := openTestStore(t, fs, "node")
	t.Cleanup(func() { _ = store.Close() })
	store.Watch(0)
	s := openSnapshots(t, store, 3)
	var reported []error
	s.Refused = func(err error) { reported = append(reported, err) }
	sink, err := s.Create(1, 10, 2, raft.Configuration{}, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.(*SnapshotSink).Record(); err != nil {
		t.Fatal(err)
	}
	row, _ := storage.WorkspaceRange(3, storage.ID{9})
	rows := make([]byte, 2<<20)
	for i := range rows {
		rows[i] = byte(rand.Uint32())
	}
	if err := store.State().Set(row, rows, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := store.FlushState(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := s.Open(sink.ID()); !errors.Is(err, storage.ErrNoRoom) {
			t.Fatal(err)
		}
	}
	if s.Sending() || len(reported) != 1 {
		t.Errorf("sending: %t, reported %v", s.Sending(), reported)
	}
}
