package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// fill has a node get the first entries of a shard from its leader, and cuts it off from the leader
// then: it is filling. The replica that it had before is dropped already.
func (w *network) fill(t testing.TB, leader *running, shard storage.Shard, name string) *group {
	t.Helper()
	n := w.nodes[name]
	isCut := w.cutAfterEntries(shardLink{shard, leader.id.Node, name}) // before the next request, which has more
	if err := n.hostReplica(shard, leader.newest(t, shard)); err != nil {
		t.Fatal(err)
	}
	if err := w.change(t, leader, shard, replicaChange{replicaAdd, name}); err != nil {
		t.Fatal(err)
	}
	g := n.group(shard)
	testkit.Eventually(t, name+" has the first entries", isCut)
	if !g.isFilling() {
		t.Fatalf("%s got all entries before it was cut off", name)
	}
	return g
}

// moveAway has a shard of a, b and c move from c to d while b is cut off, and returns its leader a, which
// has acknowledged a row since.
func moveAway(t *testing.T) (*network, *running) {
	t.Helper()
	w, _ := threeNodes(t, 1)
	w.boot(t, "d", vfs.NewMem(), false, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	for i := range 60 {
		a.mustPropose(t, 1, fmt.Sprintf("before %d", i))
	}
	w.same(t, 1, "a", "b", "c")
	w.isolate(true, "b", "a", "c", "d")
	w.addVoter(t, a, 1, "d")
	w.removeVoter(t, a, 1, "c")
	if err := c.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	a.mustPropose(t, 1, "acknowledged")
	w.same(t, 1, "a", "d")
	return w, a
}

// A replica that comes back to a node does not help a member to lead that was away since before it left: b
// counts c by its old configuration, and lacks what a and d have acknowledged.
func TestFilling_HelpsNoMemberWithAnOldConfiguration(t *testing.T) {
	t.Parallel()
	w, a := moveAway(t)
	defer w.mend()
	w.fill(t, a, 1, "c")
	w.isolate(true, "a", "b", "c", "d")
	w.isolate(false, "b", "c", "d")
	owner := w.owner(t, 1, "b", "d")
	if !owner.has(t, 1, "acknowledged") {
		t.Errorf("%s serves without what was acknowledged", owner.id.Node)
	}
}

// A replica that is filling neither votes nor stands, also after a restart, and does not become a voter.
// Then it does.
func TestFilling_NeitherVotesNorStands(t *testing.T) {
	t.Parallel()
	w, a := moveAway(t)
	defer w.mend()
	disk := vfs.NewMem()
	w.boot(t, "e", disk, false, 1)
	g := w.fill(t, a, 1, "e")
	wantNoVote := func() {
		t.Helper()
		g.tracking.silence.heard.Store(g.tuning.clock() - int64(time.Hour))
		header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte("b")}
		for _, request := range []any{
			&raft.RequestPreVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000},
			&raft.RequestVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000},
			&raft.RequestVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000, LeadershipTransfer: true},
		} {
			if !refusedEarly(g, request) {
				t.Errorf("it votes: %+v", request)
			}
		}
		answer := make(chan raft.RPCResponse, 1)
		if !g.intercept(&raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header}, RespChan: answer}) || (<-answer).Error == nil {
			t.Error("it stands for election when it is asked to")
		}
		if set := g.raft.ReloadableConfig(); set.HeartbeatTimeout != fillingTimeout || set.ElectionTimeout != fillingTimeout {
			t.Errorf("it stands for election after %v", set.HeartbeatTimeout)
		}
		if term := g.raft.CurrentTerm(); term < a.group(1).raft.CurrentTerm() {
			t.Errorf("it would follow a leader of term %d", term)
		}
	}
	wantNoVote()
	w.nodes["e"].stop()
	g = w.boot(t, "e", disk, false, 1).group(1)
	if !g.isFilling() {
		t.Fatal("the replica is not filling after a restart")
	}
	wantNoVote()

	w.isolate(false, "e", "a")
	testkit.Eventually(t, "it is filled", func() bool { return !g.isFilling() })
	if set := g.raft.ReloadableConfig().HeartbeatTimeout; set == fillingTimeout {
		t.Error("it would send no heartbeats if it led now")
	}
	testkit.Eventually(t, "it looks for its leader", func() bool {
		return g.raft.ReloadableConfig().HeartbeatTimeout == followerTimeout
	})
	testkit.Eventually(t, "it is a voter", func() bool {
		return w.change(t, a, 1, replicaChange{replicaPromote, "e"}) == nil
	})
	w.nodes["e"].stop()
	if g = w.boot(t, "e", disk, false, 1).group(1); g.isFilling() {
		t.Error("the replica is filling anew after a restart")
	}
	w.same(t, 1, "a", "d", "e")
}

// The group's first member, whose replica comes back, does not lead alone by the group's first
// configuration, and takes part in elections again when it is filled.
func TestFilling_FounderThatComesBack(t *testing.T) {
	t.Parallel()
	w, disk := newNetwork(), vfs.NewMem()
	defer w.mend()
	a := w.boot(t, "a", disk, true, 1)
	b := w.boot(t, "b", vfs.NewMem(), false, 1)
	w.boot(t, "c", vfs.NewMem(), false, 1)
	w.owner(t, 1, "a")
	for i := range 60 {
		a.mustPropose(t, 1, fmt.Sprintf("before %d", i))
	}
	w.addVoter(t, a, 1, "b")
	w.addVoter(t, a, 1, "c")
	w.lead(t, 1, "b")
	w.removeVoter(t, b, 1, "a")
	if err := a.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	b.mustPropose(t, 1, "acknowledged")
	g := w.fill(t, b, 1, "a")
	var voters []string
	testkit.Eventually(t, "a knows a configuration", func() bool { // Raft reads it from an entry after the entry is in the log
		var err error
		if voters, _, err = g.members(); err != nil {
			t.Fatal(err)
		}
		return len(voters) > 0
	})
	if len(voters) != 1 || voters[0] != "a" {
		t.Fatalf("a has the voters %v", voters)
	}
	a.stop()
	a = w.boot(t, "a", disk, true, 1) // a group's only voter stands at once
	if set := a.group(1).raft.ReloadableConfig(); set.HeartbeatTimeout != fillingTimeout {
		t.Errorf("it stands for election after %v", set.HeartbeatTimeout)
	}
	w.isolate(false, "a", "b")
	testkit.Eventually(t, "a is a voter", func() bool {
		return w.change(t, b, 1, replicaChange{replicaPromote, "a"}) == nil
	})
	w.isolate(true, "b", "a", "c")
	owner := w.owner(t, 1, "a", "c")
	if !owner.has(t, 1, "acknowledged") {
		t.Errorf("%s serves without what was acknowledged", owner.id.Node)
	}
}

// A member becomes a voter when it has the entry by which it was added: it is filled by then.
func TestFilling_BecomesNoVoterBefore(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	g := w.nodes["a"].group(1)
	term, added := g.raft.CurrentTerm(), g.log.Configured()
	for has, ready := range map[uint64]bool{added - 1: false, added: true} {
		id := raft.ServerID(fmt.Sprint("at ", has))
		sent := g.tracking.leaseClock()
		g.tracking.record(id, &raft.AppendEntriesRequest{Term: term, PrevLogEntry: 1}, &raft.AppendEntriesResponse{Term: term, LastLog: has, Success: true}, sent, added)
		if g.isReady(id) != ready {
			t.Errorf("with entry %d of %d it is ready: %t", has, added, !ready)
		}
	}
}

// A member votes for a candidate that it has not heard of: b was away when d was added, and is needed when
// a dies.
func TestVote_CandidateThatIsUnknown(t *testing.T) {
	t.Parallel()
	w, _ := moveAway(t)
	defer w.mend()
	w.isolate(true, "a", "b", "c", "d")
	w.isolate(false, "b", "d")
	if owner := w.owner(t, 1, "d"); !owner.has(t, 1, "acknowledged") {
		t.Error("d has lost a row")
	}
}
