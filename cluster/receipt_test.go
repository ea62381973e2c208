package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// receive has a node's replica receive a snapshot that its leader does not send to the end, and returns
// when files of it are on the node's disk. Like a connection, the stream ends with the replica's transport,
// unless it hangs: then it ends when the returned function is called.
func (w *network) receive(t *testing.T, shard storage.Shard, leader *running, name string, disk vfs.FS, hangs bool) (end func()) {
	t.Helper()
	g := w.nodes[name].group(shard)
	stream := exported(t, leader, shard)
	rows, sender := io.Pipe()
	end = func() { _ = sender.CloseWithError(io.ErrUnexpectedEOF) }
	t.Cleanup(end)
	w.mu.Lock()
	to := w.at[shard][name]
	w.mu.Unlock()
	from := []byte(leader.Name())
	to.arrivals <- raft.RPC{Reader: rows, RespChan: make(chan raft.RPCResponse, 1), Command: &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: from, Addr: from},
		SnapshotVersion: raft.SnapshotVersionMax, Term: g.raft.CurrentTerm(), LastLogIndex: 1 << 20, LastLogTerm: g.raft.CurrentTerm(),
		Size:          int64(len(stream)),
		Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}),
	}}
	if !hangs {
		go func() {
			<-to.closed
			end()
		}()
	}
	if _, err := sender.Write(stream[:len(stream)-1]); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the rows are received", func() bool { return transfers(disk, name) > 0 })
	return end
}

// exported returns the stream of a shard's rows.
func exported(t *testing.T, r *running, shard storage.Shard) []byte {
	t.Helper()
	out, err := r.store.Export(t.Context(), shard, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	stream, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// transfers counts the transfers of which files are on a node's disk.
func transfers(disk vfs.FS, name string) int {
	left, _ := disk.List(disk.PathJoin(name, "export"))
	return len(left)
}

// A replica is dropped while it receives a snapshot: its node drains, or its disk is full. That ends the
// receipt.
func TestDrop_WhileASnapshotIsReceived(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	a.mustPropose(t, 1, "row")
	w.removeVoter(t, a, 1, "c")
	w.receive(t, 1, a, "c", disks["c"], false)
	if err := c.dropReplica(1); err != nil {
		t.Error(err)
	}
	if n := transfers(disks["c"], "c"); n > 0 {
		t.Errorf("%d transfers are left on the disk", n)
	}
}

// So is one that has received a snapshot and not installed it.
func TestDrop_BeforeASnapshotIsInstalled(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	a.mustPropose(t, 1, "row")
	w.removeVoter(t, a, 1, "c")
	sink, err := c.group(1).snapshots.Create(raft.SnapshotVersionMax, 1<<20, 1, raft.Configuration{}, 1, nil)
	if err == nil {
		_, err = io.Copy(sink, bytes.NewReader(exported(t, a, 1)))
	}
	if err == nil {
		err = sink.Close()
	}
	if err != nil || transfers(disks["c"], "c") == 0 {
		t.Fatalf("nothing was received: %v", err)
	}
	if err := c.dropReplica(1); err != nil {
		t.Error(err)
	}
	if n := transfers(disks["c"], "c"); n > 0 {
		t.Errorf("%d transfers are left on the disk", n)
	}
}

// A replica whose Raft does not end in time is dropped when it has ended, and there is no other one before.
func TestDrop_RaftEndsLate(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	w.tune = func(t *tuning) {
		soonCommitted(t)
		t.shutdown = 50 * time.Millisecond
	}
	disks := w.growToThree(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	a.mustPropose(t, 1, "row")
	w.removeVoter(t, a, 1, "c")
	end := w.receive(t, 1, a, "c", disks["c"], true)
	if err := c.dropReplica(1); err == nil {
		t.Error("the replica was dropped before its end")
	}
	// Further requests don't wait for the end, so that others of the node's replicas are created and dropped.
	failed := c.group(1)
	if err := c.dropReplica(1); err == nil || c.group(1) != failed {
		t.Errorf("a second request ended with %v, another failed replica: %t", err, c.group(1) != failed)
	}
	if err := c.hostReplica(1, a.newest(t, 1)); err == nil {
		t.Error("another replica was created before its end")
	}
	if r, ok := reportOf(c, 1); !ok || !strings.Contains(r.Failed, "drop the replica") {
		t.Errorf("the placement is not told that the replica is there: %+v", r)
	}
	end()
	testkit.Eventually(t, "the replica is dropped", func() bool { return c.dropReplica(1) == nil })
	if n := transfers(disks["c"], "c"); n > 0 || c.group(1) != nil {
		t.Errorf("%d transfers are left on the disk, a replica: %t", n, c.group(1) != nil)
	}
	w.addVoter(t, a, 1, "c")
	w.same(t, 1, "a", "b", "c")
}

// A node is stopped while a replica, whose log is long enough for a snapshot of its own, receives one.
func TestStop_WhileASnapshotIsReceived(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	pending := &c.group(1).machine.pending
	testkit.Eventually(t, "the log is long enough", func() bool {
		row := make([]byte, 4<<10) // that can't be compressed
		_, _ = rand.Read(row)
		a.mustPropose(t, 1, string(row))
		return pending.Load() > closeSnapshotBytes
	})
	w.receive(t, 1, a, "c", disks["c"], false)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}
