package cluster

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// trackingTransport stands between a group and its transport. It knows when each peer last
// answered what was sent to it, which Raft does not tell; it can have its own
// member stand for election; and it keeps Raft's fast path for heartbeats closed.
//
// On that path a heartbeat of a newer term changes the term on the transport's
// goroutine while the deposed leader may still take a proposal, which it would
// then append under the new leader's term: two different entries of one index and
// term. Everything goes through Raft's own goroutine instead.
type trackingTransport struct {
	raft.Transport
	clock func() int64
	last  func() uint64 // newest entry of this node's log

	// intercept sees each request first, and tells whether it answered it; nil: none.
	intercept func(*raft.RPC) bool

	requests chan raft.RPC
	quit     chan struct{}
	ended    chan struct{}
	shut     sync.Once

	mu    sync.Mutex
	term  uint64 // in which peers answered
	peers map[raft.ServerID]followerAnswers
}

// followerAnswers is what a leader knows of a peer from its answers in one term.
type followerAnswers struct {
	sent       int64  // when the newest request it answered was sent
	lag        uint64 // entries it was behind then
	follow     bool   // it takes entries: its log is part of the leader's
	followAsOf int64  // when the newest request that told was sent
}

// errTransport refuses elections over a transport that can't ask before it
// votes: a member cut off for a while would depose a working leader.
var errNoPreVote = errors.New("cluster: the transport has no pre-vote")

func newTrackingTransport(to raft.Transport, clock func() int64, last func() uint64, arrived func(*raft.RPC) bool) *trackingTransport {
	w := &trackingTransport{Transport: to, clock: clock, last: last, intercept: arrived, requests: make(chan raft.RPC),
		quit: make(chan struct{}), ended: make(chan struct{}), peers: map[raft.ServerID]followerAnswers{}}
	go w.relayRequests()
	return w
}

// relayRequests passes on what arrives. Raft closes the tracking transport after its own goroutines.
func (w *trackingTransport) relayRequests() {
	defer close(w.ended)
	for {
		select {
		case rpc := <-w.Transport.Consumer():
			if w.intercept != nil && w.intercept(&rpc) {
				continue
			}
			select {
			case w.requests <- rpc:
			case <-w.quit:
				return
			}
		case <-w.quit:
			return
		}
	}
}

// Consumer gives what arrives, and what elect asks.
func (w *trackingTransport) Consumer() <-chan raft.RPC { return w.requests }

// SetHeartbeatHandler does nothing: heartbeats arrive like everything else.
func (w *trackingTransport) SetHeartbeatHandler(func(raft.RPC)) {}

// Close ends the tracking transport and its transport.
func (w *trackingTransport) Close() error {
	var err error
	w.shut.Do(func() {
		close(w.quit)
		<-w.ended
		if closer, ok := w.Transport.(raft.WithClose); ok {
			err = closer.Close()
		}
	})
	return err
}

// triggerElection has the own member stand for election at once, as a leader that hands
// over asks a peer to. A leader thereby gets a new term, or a successor.
func (w *trackingTransport) triggerElection() {
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{
		Command:  &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}},
		RespChan: answer,
	}
	select {
	case w.requests <- rpc:
	case <-w.quit:
	}
}

// RequestPreVote asks a peer whether it would vote.
func (w *trackingTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	to, ok := w.Transport.(raft.WithPreVote)
	if !ok {
		return errNoPreVote
	}
	return to.RequestPreVote(id, target, args, resp)
}

// AppendEntries sends entries or a heartbeat, and notes the answer.
func (w *trackingTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent, last := w.clock(), w.last()
	if err := w.Transport.AppendEntries(id, target, args, resp); err != nil {
		return err
	}
	if resp.Term != args.Term {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case args.Term < w.term:
		return nil
	case args.Term > w.term:
		w.term = args.Term
		clear(w.peers)
	}
	seen := w.peers[id]
	// Heartbeats and entries overtake each other. Only entries tell whether the peer
	// follows, and once it does they go by pipeline, past here: an answer that a
	// heartbeat overtook counts all the same.
	if (len(args.Entries) > 0 || args.PrevLogEntry > 0) && sent >= seen.followAsOf {
		seen.followAsOf, seen.follow = sent, resp.Success
	}
	if sent >= seen.sent {
		has := resp.LastLog // before what was sent now
		if n := len(args.Entries); n > 0 && resp.Success {
			has = max(has, args.Entries[n-1].Index)
		}
		seen.sent, seen.lag = sent, last-min(last, has)
	}
	w.peers[id] = seen
	return nil
}

// AppendEntriesPipeline sends entries ahead of their answers.
func (w *trackingTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	to, err := w.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return newPipeline(to), nil
}

// provenSince is a moment since which no other member can have been elected in a
// newer term: a quorum of the voters answered in this term what was sent at it or
// later. now stands for the own vote. False when a quorum never answered.
//
// Raft's own VerifyLeader does not prove as much: it counts answers to what was
// sent before it was asked, also ones that lay unread while the process was
// paused, and it counts members without a vote.
func (w *trackingTransport) provenSince(term uint64, self raft.ServerID, servers []raft.Server, now int64) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sent []int64
	voters := 0
	for _, server := range servers {
		if server.Suffrage != raft.Voter {
			continue
		}
		voters++
		if server.ID == self {
			sent = append(sent, now)
		} else if seen, ok := w.peers[server.ID]; ok && w.term == term {
			sent = append(sent, seen.sent)
		}
	}
	if quorum := voters/2 + 1; voters > 0 && len(sent) >= quorum {
		slices.Sort(sent)
		return sent[len(sent)-quorum], true
	}
	return 0, false
}

// caughtUpLag is how many entries behind a peer may be to count as caught up:
// about what is in flight under load.
const caughtUpLag = 256

// followerProgress gives how far behind a peer was when it last answered in the term; false
// when it has not answered of late, or takes no entries yet.
func (w *trackingTransport) followerProgress(term uint64, id raft.ServerID, within time.Duration) (lag uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, known := w.peers[id]
	if !known || w.term != term {
		return 0, false
	}
	return seen.lag, seen.follow && w.clock()-seen.sent <= int64(within)
}
