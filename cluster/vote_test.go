package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// asksFor gives a member the request of another one for its pre-vote, whose log is ahead of its own by so many
// entries, and returns whether it could be granted: then the member granted it, or left it to Raft.
func asksFor(t *testing.T, g *group, candidate string, ahead uint64) bool {
	t.Helper()
	_, last := g.log.Bounds()
	var newest raft.Log
	if err := g.log.GetLog(last, &newest); err != nil {
		t.Fatal(err)
	}
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{RespChan: answer, Command: &raft.RequestPreVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(candidate), Addr: []byte(candidate)},
		Term:      g.raft.CurrentTerm() + 1, LastLogIndex: last + ahead, LastLogTerm: newest.Term,
	}}
	return !g.interceptVote(&rpc) || (<-answer).Response.(*raft.RequestPreVoteResponse).Granted
}

// awaitSilence waits until members take their leader for silent. They are cut off: a message that is on its way still
// comes, so the test can't set the time itself.
func awaitSilence(t *testing.T, members ...*group) {
	t.Helper()
	for _, g := range members {
		testkit.Eventually(t, g.node+" has heard from no leader for a while", func() bool {
			return g.tracking.silence.since(g.tuning.clock()) >= int64(silentLeader)
		})
	}
}

// A member whose leader is silent does not stand for election while another one is about to be elected. Both
// would vote for themselves, and wait for another time-out.
func TestVote_AwaitsACandidate(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 2)
	w.owner(t, 2, "a")
	// In shard 2 it is the turn of b first, and that of c later.
	b, c := w.nodes["b"].group(2), w.nodes["c"].group(2)
	now := b.tuning.clock
	b.candidateAsked.Store(now() + int64(time.Hour)) // a candidate that asks again and again
	w.isolate(true, "a", "b", "c")
	w.isolate(true, "b", "c")
	testkit.Eventually(t, "the other member stands, and the time-out of this one has passed as well", func() bool {
		return c.stood.Load() != 0 && b.tracking.silence.since(now()) > int64(2*electionTimeout)
	})
	if b.stood.Load() != 0 {
		t.Error("the member stands while it awaits a candidate")
	}
	b.candidateAsked.Store(now() - int64(candidateTime))
	testkit.Eventually(t, "the member stands after the candidate's time", func() bool { return b.stood.Load() != 0 })
}

// A member notes the candidates that could have its vote, and no others.
func TestVote_NotesCandidates(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	g := w.nodes["b"].group(1)
	if g.awaitsCandidate() {
		t.Error("a member that no candidate has asked awaits one")
	}
	if asksFor(t, g, "c", 0); g.awaitsCandidate() {
		t.Error("the member follows a leader and awaits a candidate")
	}
	w.isolate(true, "a", "b", "c")
	w.isolate(true, "b", "c")
	awaitSilence(t, g)
	if asksFor(t, g, "c", ^uint64(0)); g.awaitsCandidate() {
		t.Error("the member awaits a candidate that lacks its last entry")
	}
	if asksFor(t, g, "c", 0); !g.awaitsCandidate() {
		t.Error("the member awaits no candidate that could have its vote")
	}
}

// Of two candidates with the same log the one whose turn comes first refuses the other one, for a moment.
func TestVote_OneOfTwoCandidates(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 2)
	first, second := w.nodes["b"].group(2), w.nodes["c"].group(2)
	// A member that awaits a candidate does not stand by itself. It would do so at any moment of this test.
	awaits := func(g *group) { g.candidateAsked.Store(g.tuning.clock() + int64(time.Hour)) }
	asks := func(g *group, candidate string, ahead uint64) bool {
		defer awaits(g)
		return asksFor(t, g, candidate, ahead)
	}
	awaits(first)
	awaits(second)
	w.isolate(true, "a", "b", "c")
	w.isolate(true, "b", "c")
	awaitSilence(t, first, second)
	for _, g := range []*group{first, second} {
		if other := map[string]string{"b": "c", "c": "b"}[g.node]; !asks(g, other, 0) {
			t.Errorf("%s does not stand, and refuses a candidate", g.node)
		}
		g.stood.Store(g.tuning.clock() + int64(time.Hour))
	}
	if asks(first, "c", 0) || !asks(second, "b", 0) {
		t.Error("not the candidate whose turn comes first goes before the other one")
	}
	if !asks(first, "c", 1) {
		t.Error("a candidate is refused whose log is ahead")
	}
	first.stood.Store(first.tuning.clock() - int64(candidateTime))
	if !asks(first, "c", 0) {
		t.Error("a candidate is refused although the member has stood for long")
	}
}
