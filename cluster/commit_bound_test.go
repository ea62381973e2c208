package cluster

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// A former leader has an entry that it could not commit. The first request of the next leader has no
// entries, but a commit index behind that entry: the leader has committed others meanwhile.
func TestBoundCommit_OfAFormerLeader(t *testing.T) {
	t.Parallel()
	own := &wire{arrivals: make(chan raft.RPC), closed: make(chan struct{})}
	w := newTrackingTransport(own, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
	conf := raft.DefaultConfig()
	conf.LocalID = "b"
	conf.LogOutput = io.Discard
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Hour, time.Hour // it stays a follower
	conf.LeaderLeaseTimeout = time.Hour
	store, snapshots := raft.NewInmemStore(), raft.NewDiscardSnapshotStore()
	members := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}, {ID: "b", Address: "b"}, {ID: "c", Address: "c"}}}
	err := errors.Join(
		raft.BootstrapCluster(conf, store, store, snapshots, w, members), // entry 1, of term 1
		store.StoreLogs([]*raft.Log{{Index: 2, Term: 1, Data: []byte("before")}, {Index: 3, Term: 2, Data: []byte("stuck")}}),
		store.SetUint64([]byte("CurrentTerm"), 2))
	if err != nil {
		t.Fatal(err)
	}
	machine := &raft.MockFSM{}
	follower, err := raft.NewRaft(conf, machine, store, store, snapshots, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(follower.Shutdown().Error(), w.Close()); err != nil {
			t.Error(err)
		}
	})
	ask := func(entries ...*raft.Log) *raft.AppendEntriesRequest {
		asks := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")},
			Term:      3, PrevLogEntry: 2, PrevLogTerm: 1, Entries: entries, LeaderCommitIndex: 5,
		}
		answer := make(chan raft.RPCResponse, 1)
		own.arrivals <- raft.RPC{Command: asks, RespChan: answer}
		if a := <-answer; a.Error != nil || !a.Response.(*raft.AppendEntriesResponse).Success {
			t.Fatalf("%+v, %v", a.Response, a.Error)
		}
		return asks
	}
	if asks := ask(); asks.LeaderCommitIndex != 5 {
		t.Error("the sender's request was changed")
	}
	if got := follower.CommitIndex(); got != 2 {
		t.Errorf("entries up to %d count as committed, the leader has shown those up to 2", got)
	}
	ask(&raft.Log{Index: 3, Term: 3, Data: []byte("after")}, &raft.Log{Index: 4, Term: 3, Data: []byte("last")})
	if got := follower.CommitIndex(); got != 4 {
		t.Errorf("entries up to %d count as committed, want 4", got)
	}
	testkit.Eventually(t, "three entries are applied", func() bool { return len(machine.Logs()) >= 3 })
	if got := bytes.Join(machine.Logs(), []byte(" ")); string(got) != "before after last" {
		t.Errorf("applied %q", got)
	}
}
