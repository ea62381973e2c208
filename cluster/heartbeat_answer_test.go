package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// A follower answers what Raft would, in the term of its leader alone, and Raft still hears from the
// leader.
func TestHeartbeatAnswer(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	a, b := w.nodes["a"].group(1), w.nodes["b"].group(1)
	term := b.raft.CurrentTerm()
	ask := func(g *group, asks *raft.AppendEntriesRequest) (*raft.AppendEntriesResponse, bool) {
		answer := make(chan raft.RPCResponse, 1)
		asks.RPCHeader = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")}
		if !g.answerHeartbeat(&raft.RPC{Command: asks, RespChan: answer}) {
			return nil, false
		}
		return (<-answer).Response.(*raft.AppendEntriesResponse), true
	}
	testkit.Eventually(t, "the follower answers", func() bool {
		got, ok := ask(b, &raft.AppendEntriesRequest{Term: term})
		if ok && (!got.Success || got.Term != term || got.LastLog != b.raft.LastIndex()) {
			t.Errorf("answered %+v", got)
		}
		return ok
	})
	for what, asks := range map[string]*raft.AppendEntriesRequest{
		"an older term": {Term: term - 1}, "a newer term": {Term: term + 1},
		"a look at the log": {Term: term, PrevLogEntry: 1}, "the commit": {Term: term, LeaderCommitIndex: 1},
	} {
		if _, ok := ask(b, asks); ok {
			t.Errorf("%s is not left to Raft", what)
		}
	}
	if _, ok := ask(a, &raft.AppendEntriesRequest{Term: term}); ok {
		t.Error("a leader follows itself")
	}
	contact := b.raft.LastContact()
	testkit.Eventually(t, "Raft hears from the leader, too", func() bool { return b.raft.LastContact().After(contact) })
	// On a busy machine the leader may have lost its followers meanwhile.
	if state, now := b.raft.State(), b.raft.CurrentTerm(); a.raft.CurrentTerm() == term && (now != term || state != raft.Follower) {
		t.Errorf("the follower is %v in term %d, was in %d", state, now, term)
	}
	if heard := b.heard(); time.Since(heard) > relaxedTimeout {
		t.Errorf("heard from the leader at %v", heard)
	}
}

// A vote that Raft has taken and may not have given yet keeps heartbeats from being answered without
// it, until Raft has taken a later request.
func TestHeartbeatAnswer_VoteUnderWay(t *testing.T) {
	t.Parallel()
	now := int64(0)
	_, w := newBlockingTransport(t, &now)
	take := func(command any) {
		taken := make(chan bool)
		go func() { taken <- w.take(raft.RPC{Command: command}, true, nil) }()
		<-w.Consumer()
		if !<-taken {
			t.Fatal("the request was not taken")
		}
	}
	if !w.votesGiven() {
		t.Error("there was no vote yet")
	}
	vote := &raft.RequestVoteRequest{Term: 6}
	w.arrive(&raft.RPC{Command: vote})
	if take(vote); w.votesGiven() {
		t.Error("the vote that was just taken counts as given")
	}
	w.arrive(&raft.RPC{Command: vote})
	if take(vote); w.votesGiven() {
		t.Error("the second of two votes counts as given")
	}
	if take(&raft.AppendEntriesRequest{Term: 5}); !w.votesGiven() {
		t.Error("a later request was taken, so the votes are given")
	}
	// A heartbeat that is on its way to Raft when the vote is taken says nothing about it.
	gone := make(chan struct{})
	close(gone)
	w.arrive(&raft.RPC{Command: vote})
	if w.take(raft.RPC{Command: vote}, true, gone); !w.votesGiven() {
		t.Error("a vote that Raft never got is not given")
	}
}
