package cluster

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// A replica whose entries are gone from the log is sent the shard, while writes go
// on, and is equal then.
func TestRestore_ReplicaThatIsFarBehind(t *testing.T) {
	t.Parallel()
	w, disks := trio(t, 1)
	a := w.nodes["a"]
	a.mustPropose(t, 1, "first")
	w.same(t, 1, "a", "b", "c")
	w.nodes["c"].stop()
	for i := range 200 {
		a.mustPropose(t, 1, fmt.Sprintf("row-%d", i))
	}
	if err := a.group(1).snapshot(); err != nil {
		t.Fatal(err)
	}
	a.mustPropose(t, 1, "after the snapshot")
	c := w.boot(t, "c", disks["c"], false, 1)
	for i := range 50 {
		a.mustPropose(t, 1, fmt.Sprintf("meanwhile-%d", i))
	}
	w.same(t, 1, "a", "b", "c")
	row, err := c.group(1).snapshots.latest(kindSnapshot)
	if err != nil || row == nil || row.Imported < row.Index {
		t.Fatalf("no snapshot was restored: %+v, %v", row, err)
	}
	a.mustPropose(t, 1, "last")
	w.same(t, 1, "a", "b", "c")
	// It starts again from what it has, and takes part.
	c.stop()
	w.boot(t, "c", disks["c"], false, 1)
	w.nodes["b"].stop()
	a.mustPropose(t, 1, "by a and c")
	w.same(t, 1, "a", "c")
}

// sendTo makes a state machine take an export in, up to a step.
func sendTo(t *testing.T, from, to *storage.Store, shard storage.Shard, index uint64) (*snapshotStore, raft.SnapshotSink) {
	t.Helper()
	s := &snapshotStore{store: to, shard: shard, exports: newExports()}
	sink, err := s.Create(1, index, 3, raft.Configuration{Servers: []raft.Server{{ID: "c", Address: "c"}}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	export, err := from.Export(shard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = export.Close() }()
	if _, err := io.Copy(sink, export); err != nil {
		t.Fatal(err)
	}
	return s, sink
}

// announce writes the row with which a restore begins.
func announce(s *snapshotStore, received *receivedSnapshot) func(*pebble.Batch) error {
	return func(b *pebble.Batch) error {
		return s.put(b, kindRestoring, snapshotRow{SnapshotMeta: received.meta})
	}
}

// Crashes between any two steps of a restore leave a node that starts: with the old
// state and log, or with the new state.
func TestRestore_Crashes(t *testing.T) {
	t.Parallel()
	w, _ := trio(t, 1)
	a := w.nodes["a"]
	for i := range 20 {
		a.mustPropose(t, 1, fmt.Sprintf("row-%d", i))
	}
	at, err := readPosition(a.store.State(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range []bool{false, false, true, true} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			n := newNetwork()
			c := n.boot(t, "c", disk, true, 1)
			n.owner(t, 1, "c")
			c.mustPropose(t, 1, "old")
			c.stop()

			store := openStore(t, disk, "c")
			s, sink := sendTo(t, a.store, store, 1, at.applied-5)
			if step > 0 {
				if err := sink.Close(); err != nil {
					t.Fatal(err)
				}
				received := s.received
				m, err := newStateMachine(store, 1, &flusher{do: store.FlushState})
				if err != nil {
					t.Fatal(err)
				}
				m.snapshots = s
				switch step {
				case 1: // only announced
					if err := s.commit(announce(s, received)); err != nil {
						t.Fatal(err)
					}
				case 2: // ingested, not recorded
					if err := s.commit(announce(s, received)); err != nil {
						t.Fatal(err)
					}
					if err := received.rows.Ingest(context.Background()); err != nil {
						t.Fatal(err)
					}
				case 3: // all but what Raft does then
					if err := m.Restore(nothing{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			crashed := disk.CrashClone(vfs.CrashCloneCfg{})
			_ = store.Close()

			r := newNetwork()
			c = r.boot(t, "c", crashed, true, 1)
			if got := c.has(t, 1, "row-7"); got != want {
				t.Errorf("the new state is there: %t, want %t", got, want)
			}
			if got := c.has(t, 1, "old"); got == want {
				t.Errorf("the old state is there: %t", got)
			}
			if marker, err := c.group(1).snapshots.latest(kindRestoring); err != nil || marker != nil {
				t.Errorf("the mark of the restore is still there: %v, %v", marker, err)
			}
			// Its log is the snapshot's, or the old one.
			_, last := c.group(1).log.bounds()
			if want && last != 0 && last < at.applied-5 {
				t.Errorf("a log that ends at %d", last)
			}
			if !want {
				r.owner(t, 1, "c").mustPropose(t, 1, "new")
			}
		})
	}
}

func TestExports_KeepLogs(t *testing.T) {
	t.Parallel()
	e := newExports()
	first, err := e.begin(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.begin(2, nil); err != nil {
		t.Fatal(err)
	}
	if !e.needs(1) || e.needs(3) {
		t.Error("the wrong logs are kept")
	}
	quit := make(chan struct{})
	close(quit)
	if _, err := e.begin(3, quit); err == nil {
		t.Error("more than the places there are")
	}
	first()
	first()
	if !e.needs(1) {
		t.Error("the log goes with the export's end")
	}
	e.ended[1] = time.Now().Add(-exportGrace)
	if e.needs(1) {
		t.Error("the log is kept for ever")
	}
}
