package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// blockingTransport answers a heartbeat when a test says so, with the term that the test gives.
type blockingTransport struct {
	*wire
	asked  chan struct{}
	answer chan raft.AppendEntriesResponse
	fast   bool
}

func (h *blockingTransport) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	h.asked <- struct{}{}
	*resp = <-h.answer
	return nil
}

func (h *blockingTransport) SetHeartbeatHandler(func(raft.RPC)) { h.fast = true }

func newBlockingTransport(t *testing.T, now *int64) (*blockingTransport, *trackingTransport) {
	h := &blockingTransport{wire: &wire{arrivals: make(chan raft.RPC), closed: make(chan struct{})},
		asked: make(chan struct{}), answer: make(chan raft.AppendEntriesResponse)}
	w := newTrackingTransport(h, func() int64 { return *now }, func() uint64 { return 10 }, nil)
	t.Cleanup(func() { _ = w.Close() })
	return h, w
}

// An answer that was read late, because the process was paused, proves leadership at the
// time when its request was sent.
func TestTrackingTransport_ProofCountsFromTheSending(t *testing.T) {
	t.Parallel()
	now := int64(100)
	h, w := newBlockingTransport(t, &now)
	servers := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "spare", Suffrage: raft.Nonvoter}}
	beat := func(to raft.ServerID, term uint64, during func()) {
		ended := make(chan error)
		go func() {
			ended <- w.AppendEntries(to, raft.ServerAddress(to), &raft.AppendEntriesRequest{Term: 5}, &raft.AppendEntriesResponse{})
		}()
		<-h.asked
		during()
		h.answer <- raft.AppendEntriesResponse{Term: term}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	none := func() {}
	want := func(term uint64, from int64, ok bool) {
		t.Helper()
		if got, is := w.provenSince(term, "a", servers, now); is != ok || got != from {
			t.Fatalf("proven from %d, %v; want %d, %v", got, is, from, ok)
		}
	}
	want(5, 0, false)
	beat("spare", 5, none) // has no vote
	want(5, 0, false)
	beat("c", 6, none) // follows another by now
	want(5, 0, false)
	beat("b", 5, func() { now = 5000 })
	want(5, 100, true)
	want(6, 0, false)
	beat("c", 5, none)
	want(5, 5000, true)
	// Alone, a node is its own quorum.
	if got, ok := w.provenSince(5, "a", servers[:1], 7000); !ok || got != 7000 {
		t.Fatalf("alone: %d, %v", got, ok)
	}
	// A member that only follows needs a quorum of others.
	if _, ok := w.provenSince(5, "spare", servers[:1], 7000); ok {
		t.Fatal("a leader without a vote proved itself")
	}
}

func TestTrackingTransport_TellsWhoFollows(t *testing.T) {
	t.Parallel()
	now := int64(0)
	h, w := newBlockingTransport(t, &now)
	send := func(args raft.AppendEntriesRequest, resp raft.AppendEntriesResponse) {
		go func() { <-h.asked; h.answer <- resp }()
		args.Term = 5
		if err := w.AppendEntries("b", "b", &args, &raft.AppendEntriesResponse{}); err != nil {
			t.Error(err)
		}
	}
	follows := func(lag uint64, ok bool) {
		t.Helper()
		if got, is := w.followerProgress(5, "b", time.Second); is != ok || ok && got != lag {
			t.Fatalf("lag %d, %v; want %d, %v", got, is, lag, ok)
		}
	}
	follows(0, false)
	send(raft.AppendEntriesRequest{}, raft.AppendEntriesResponse{Term: 5, LastLog: 10, Success: true})
	follows(0, false) // its log may be another
	send(raft.AppendEntriesRequest{Entries: []*raft.Log{{Index: 7}}}, raft.AppendEntriesResponse{Term: 5, LastLog: 3, Success: true})
	follows(3, true)
	send(raft.AppendEntriesRequest{}, raft.AppendEntriesResponse{Term: 5, LastLog: 10, Success: true})
	follows(0, true)
	now = int64(2 * time.Second)
	follows(0, false) // silent
	send(raft.AppendEntriesRequest{PrevLogEntry: 10}, raft.AppendEntriesResponse{Term: 5, LastLog: 4})
	follows(0, false) // its log differs
}

// A cut delays entries, so that they are answered after heartbeats that were sent later.
// The answers to the entries decide whether the peer follows.
func TestTrackingTransport_EntriesThatHeartbeatsOvertook(t *testing.T) {
	t.Parallel()
	now := int64(0)
	h, w := newBlockingTransport(t, &now)
	held := make(chan error)
	go func() {
		held <- w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 5, PrevLogEntry: 9}, &raft.AppendEntriesResponse{})
	}()
	<-h.asked
	now = 1000
	beat := make(chan error)
	go func() {
		beat <- w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 5}, &raft.AppendEntriesResponse{})
	}()
	<-h.asked
	for range 2 {
		h.answer <- raft.AppendEntriesResponse{Term: 5, LastLog: 10, Success: true}
	}
	for _, ended := range []chan error{held, beat} {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if lag, follows := w.followerProgress(5, "b", time.Second); !follows || lag != 0 {
		t.Errorf("lag %d, follows %t", lag, follows)
	}
}

func TestTrackingTransport_KeepsTheFastPathClosed(t *testing.T) {
	t.Parallel()
	now := int64(0)
	h, w := newBlockingTransport(t, &now)
	w.SetHeartbeatHandler(func(raft.RPC) {})
	if h.fast {
		t.Fatal("heartbeats would change the term behind Raft's goroutine")
	}
}

// Between the judgement of a vote and the vote no entry and no heartbeat reaches Raft: answered in the
// old term, it would prove a lease of the leader that the vote deposes.
func TestTrackingTransport_NoHeartbeatPassesAVote(t *testing.T) {
	t.Parallel()
	now := int64(0)
	_, w := newBlockingTransport(t, &now)
	request := func(command any) (*raft.RPC, chan raft.RPCResponse) {
		answer := make(chan raft.RPCResponse, 1)
		return &raft.RPC{Command: command, RespChan: answer}, answer
	}
	refused := func() bool {
		t.Helper()
		rpc, answer := request(&raft.AppendEntriesRequest{Term: 5})
		if !w.arrive(rpc) {
			return false
		}
		if r := <-answer; !errors.Is(r.Error, errVoteBefore) {
			t.Errorf("answered with %v", r.Error)
		}
		return true
	}
	vote, _ := request(&raft.RequestVoteRequest{Term: 6})
	gone := make(chan struct{})
	close(gone)
	for name, end := range map[string]func(){
		"Raft takes the vote": func() {
			taken := make(chan bool)
			go func() { taken <- w.take(*vote, true, nil) }()
			<-w.Consumer()
			if !<-taken {
				t.Error("the vote was not taken")
			}
		},
		"its sender is gone": func() { w.take(*vote, true, gone) },
	} {
		if refused() {
			t.Fatalf("%s: a heartbeat was refused before", name)
		}
		if w.arrive(vote) {
			t.Fatal("the vote was answered at its arrival")
		}
		if !refused() || w.take(*vote, false, nil) || !refused() {
			t.Errorf("%s: a heartbeat passes the vote", name)
		}
		end()
		if refused() {
			t.Errorf("%s: a heartbeat was refused after", name)
		}
	}
	w.intercept = asksForVote
	if !w.arrive(vote) || refused() {
		t.Error("a vote that was refused holds heartbeats up")
	}
}

// Messages that come by the connection of all groups reach Raft like others: the member's silence
// ends when they arrive, and what it answers in Raft's place it answers here, too.
func TestTrackingTransport_TakesMessagesOfLinks(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	var now atomic.Int64
	now.Store(100)
	last := func() uint64 { return 10 }
	tracking := func(node string, intercept func(*raft.RPC) bool) *trackingTransport {
		wrapped := newTrackingTransport(w.add(node, "one", nil).transportFor(1), now.Load, last, intercept)
		t.Cleanup(func() { _ = wrapped.Close() })
		return wrapped
	}
	leader := tracking("a", nil)
	follower := tracking("b", func(rpc *raft.RPC) bool {
		if _, votes := rpc.Command.(*raft.RequestPreVoteRequest); votes {
			rpc.Respond(&raft.RequestPreVoteResponse{Term: 8}, nil)
			return true
		}
		return false
	})
	send := func() chan error {
		ended := make(chan error, 1)
		go func() {
			var resp raft.AppendEntriesResponse
			err := leader.AppendEntries("b", "b", groupMessage{term: 5}.request("a").(*raft.AppendEntriesRequest), &resp)
			if err == nil && (resp.Term != 5 || !resp.Success) {
				err = fmt.Errorf("answered %+v", resp)
			}
			ended <- err
		}()
		return ended
	}
	answer := func() {
		rpc := <-follower.Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: rpc.Command.(*raft.AppendEntriesRequest).Term, Success: true, LastLog: 7}, nil)
	}
	now.Store(200)
	ended := send()
	// Raft takes nothing yet, and the heartbeat has arrived all the same.
	testkit.Eventually(t, "the heartbeat is noted", func() bool { return follower.silence.since(now.Load()) == 0 })
	now.Store(300)
	answer()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := follower.silence.since(now.Load()); got != 100 {
		t.Errorf("silent for %d", got)
	}
	if lag, _ := leader.followerProgress(5, "b", time.Hour); lag != 3 {
		t.Errorf("behind by %d entries", lag)
	}
	servers := []raft.Server{{ID: "a"}, {ID: "b"}}
	if from, ok := leader.provenSince(5, "a", servers, now.Load()); !ok || from != 200 {
		t.Errorf("proven from %d, %v: the heartbeat was sent at 200", from, ok)
	}
	var vote raft.RequestPreVoteResponse
	if err := leader.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{Term: 8}, &vote); err != nil || vote.Term != 8 || vote.Granted {
		t.Errorf("a vote: %+v, %v", vote, err)
	}
	ended = send()
	testkit.Eventually(t, "the second heartbeat is noted", func() bool { return follower.silence.since(now.Load()) == 0 })
	if err := follower.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a member that was stopped took a heartbeat")
	}
}

// A follower that answers a heartbeat in a newer term makes Raft look at it, once for each term.
func TestTrackingTransport_NotesNewerTerms(t *testing.T) {
	t.Parallel()
	now := int64(1)
	h, w := newBlockingTransport(t, &now)
	resumed := 0
	w.resume = func() { resumed++ }
	for i, c := range []struct {
		term, answered uint64
		want           int
	}{{5, 5, 0}, {5, 4, 0}, {5, 6, 1}, {5, 7, 1}, {6, 6, 1}, {6, 7, 2}, {5, 7, 2}} {
		ended := make(chan error)
		go func() {
			ended <- w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: c.term}, &raft.AppendEntriesResponse{})
		}()
		<-h.asked
		h.answer <- raft.AppendEntriesResponse{Term: c.answered}
		if err := <-ended; err != nil || resumed != c.want {
			t.Errorf("%d. resumed %d times, want %d, %v", i, resumed, c.want, err)
		}
	}
}

// A follower of an idle leader is in a newer term: it stood for election, and nobody voted for it.
func TestTrackingTransport_AnIdleLeaderFindsANewerTerm(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	a, b := w.nodes["a"].group(1), w.nodes["b"].group(1)
	term := a.raft.CurrentTerm()
	asks := raft.RequestVoteRequest{ // of a candidate whose log is too short
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("c"), Addr: []byte("c")},
		Term:      term + 1, LeadershipTransfer: true,
	}
	var answer raft.RequestVoteResponse
	if err := a.tracking.RequestVote("b", "b", &asks, &answer); err != nil || answer.Granted || b.raft.CurrentTerm() <= term {
		t.Fatalf("%+v, %v, in term %d", answer, err, b.raft.CurrentTerm())
	}
	testkit.Eventually(t, "all members are in a newer term, with one leader", func() bool {
		leaders := 0
		for _, r := range w.nodes {
			g := r.group(1)
			if g.raft.CurrentTerm() <= term {
				return false
			}
			if g.raft.State() == raft.Leader {
				leaders++
			}
		}
		return leaders == 1
	})
}
