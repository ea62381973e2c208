package cluster

import (
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// While a replica receives a snapshot, which takes as long as its leader takes to send it, the logs of
// the node's other shards are truncated.
func TestCompactor_BesideAReceivedSnapshot(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 2, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.trailing, tu.keepPrevious = 1<<30, 64<<10, 1, false
	}})
	value := strings.Repeat("x", 200)
	for r.ShardStats(1).PendingBytes < 20<<10 { // enough for a snapshot when all logs together are too long
		r.mustPropose(t, 1, value)
	}
	g := r.group(1)
	peer, transport := raft.NewInmemTransport("peer")
	transport.Connect(raft.ServerAddress(g.node), g.transport)
	t.Cleanup(transport.DisconnectAll)
	rows, stream := io.Pipe()
	t.Cleanup(func() { _ = stream.CloseWithError(io.ErrUnexpectedEOF) })
	request := &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(peer), Addr: []byte(peer)},
		SnapshotVersion: raft.SnapshotVersionMax, Term: g.raft.CurrentTerm() + 1, LastLogIndex: 1 << 20, LastLogTerm: 1, Size: 1 << 30,
		Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{
			{ID: "peer", Address: "peer"}, {ID: raft.ServerID(g.node), Address: raft.ServerAddress(g.node)},
		}}),
	}
	go func() { // the test ends the stream
		_ = transport.InstallSnapshot(raft.ServerID(g.node), raft.ServerAddress(g.node), request, &raft.InstallSnapshotResponse{}, rows)
	}()
	testkit.Eventually(t, "shard 1 follows", func() bool { return g.raft.State() == raft.Follower })

	truncated, first := 0, r.ShardStats(2).FirstIndex
	testkit.Eventually(t, "the log of shard 2 is truncated again and again", func() bool {
		for range 100 {
			r.mustPropose(t, 2, value)
		}
		if now := r.ShardStats(2).FirstIndex; now != first {
			first = now
			truncated++
		}
		return truncated == 3
	})
	if !g.truncating.Load() {
		t.Error("no snapshot of shard 1 was begun")
	}
	_ = stream.CloseWithError(io.ErrUnexpectedEOF)
	testkit.Eventually(t, "the snapshot of shard 1 ends", func() bool { return !g.truncating.Load() })
}
