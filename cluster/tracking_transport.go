package cluster

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// trackingTransport wraps a group's transport. It records when each follower last answered, which
// Raft does not tell; it can make its own member stand for election; and it keeps Raft's fast path
// for heartbeats closed. It also records when this member last heard from a leader, and so which
// elections prove that no predecessor can hold a read lease any more (see silence.go).
//
// On that path a heartbeat of a newer term changes the term on the transport's goroutine while the
// deposed leader may still take a proposal, which it would then append under the new leader's term:
// two different entries of one index and term. Here everything goes through Raft's own goroutine
// instead.
type trackingTransport struct {
	raft.Transport
	clock func() int64
	// leaseClock is the clock of when requests were sent. It is set before Raft starts; by default it
	// is clock.
	leaseClock func() int64
	last       func() uint64 // index of the newest entry in this node's log

	// intercept sees each request first and reports whether it answered it. Nil means that there is
	// none.
	intercept func(*raft.RPC) bool

	requests chan raft.RPC
	quit     chan struct{}
	ended    chan struct{}
	shut     sync.Once

	silence silence
	// voting is the number of requests for votes that were judged, and that Raft does not have yet.
	voting atomic.Int32
	// taken is the number of requests for votes that Raft has taken, and given that of those to which
	// it has certainly answered.
	taken, given atomic.Uint64
	// silent is set while this member is to be elected out: nothing is sent to its followers.
	silent atomic.Bool
	// wanted reports whether this member still leads in a term and has the member among its own. Nil
	// means that requests to members that can't be reached are not repeated.
	wanted func(term uint64, id raft.ServerID) bool
	// hasRoom reports whether a member's node has room for changes. Nil means that all have.
	hasRoom func(id raft.ServerID) bool
	// handingOver is set while the leadership is to be transferred: no refusal is held back.
	handingOver atomic.Bool
	// resume makes Raft send followers the entries that they lack. Nil does nothing.
	resume func()

	mu       sync.Mutex
	term     uint64 // term of the answers
	began    int64  // when the first request of the term that was answered was sent
	peers    map[raft.ServerID]followerAnswers
	outdated uint64 // newest term of this member that a follower answered in a newer one
}

// followerAnswers records the answers of one follower in the leader's term.
type followerAnswers struct {
	sent       int64  // when the newest request that it answered was sent
	lag        uint64 // entries by which it was behind then
	has        uint64 // newest entry that it had then
	follow     bool   // the follower takes entries: its log is a prefix of the leader's
	followAsOf int64  // when the newest request that showed follow was sent
}

// errNoPreVote refuses elections over a transport without pre-votes: a member that was cut off for
// a while would depose a working leader.
var errNoPreVote = errors.New("cluster: the transport has no pre-vote")

func newTrackingTransport(to raft.Transport, clock func() int64, last func() uint64, arrived func(*raft.RPC) bool) *trackingTransport {
	w := &trackingTransport{Transport: to, clock: clock, leaseClock: clock, last: last, intercept: arrived, requests: make(chan raft.RPC),
		quit: make(chan struct{}), ended: make(chan struct{}), peers: map[raft.ServerID]followerAnswers{}}
	w.silence.heard.Store(clock()) // a process before this one may have answered just now
	if shared, ok := to.(sharesLinks); ok {
		shared.setMember(w)
	}
	go w.relayRequests()
	return w
}

// sharesLinks is a transport whose requests share connections with those of other groups.
type sharesLinks interface {
	setMember(groupMember)
	// beginRound lets heartbeats go without delay until the round ends.
	beginRound() (end func())
}

// errVoteBefore refuses a leader's request that came behind one for a vote. It is sent again.
var errVoteBefore = errors.New("cluster: a vote that was asked for before is still to be given")

// arrive implements groupMember. A request for a vote is judged by the silence of the leader, so no
// entry and no heartbeat may reach Raft between the judgement and the vote: answered in the old term, it
// would prove a lease that goes on behind the vote. The vote is counted before it is judged, and the
// leader noted before votes are looked for, so one of two that come at once sees the other.
func (w *trackingTransport) arrive(rpc *raft.RPC) bool {
	vote := asksForVote(rpc)
	if vote {
		w.voting.Add(1)
	}
	w.silence.note(rpc, w.clock())
	if _, entries := rpc.Command.(*raft.AppendEntriesRequest); entries && w.voting.Load() > 0 {
		rpc.Respond(nil, errVoteBefore)
		return true
	}
	boundCommit(rpc)
	answered := w.intercept != nil && w.intercept(rpc)
	if vote && answered {
		w.voting.Add(-1)
	}
	return answered
}

func asksForVote(rpc *raft.RPC) bool {
	_, ok := rpc.Command.(*raft.RequestVoteRequest)
	return ok
}

// take implements groupMember.
func (w *trackingTransport) take(rpc raft.RPC, wait bool, quit <-chan struct{}) bool {
	before := w.taken.Load()
	taken := w.hand(rpc, wait, quit)
	switch vote := asksForVote(&rpc); {
	case vote && taken: // Raft answers it before it takes the next request
		w.taken.Add(1)
		w.voting.Add(-1)
	case vote && wait:
		w.voting.Add(-1)
	case taken:
		w.given.Store(before)
	}
	return taken
}

// votesGiven reports whether Raft has answered all requests for votes that it has taken. A heartbeat
// that was noted and finds no vote to be judged after that may be answered in the term that Raft has:
// later requests for votes are judged by the silence that the heartbeat has ended.
func (w *trackingTransport) votesGiven() bool { return w.given.Load() == w.taken.Load() }

// hand hands Raft a request, and reports whether Raft has taken it.
func (w *trackingTransport) hand(rpc raft.RPC, wait bool, quit <-chan struct{}) bool {
	if !wait {
		select {
		case w.requests <- rpc:
			return true
		default:
			return false
		}
	}
	select {
	case w.requests <- rpc:
		return true
	case <-w.quit:
	case <-quit:
	}
	return false
}

// beginRound begins a round in which Raft asks the voters whether this member still leads.
func (w *trackingTransport) beginRound() (end func()) {
	if shared, ok := w.Transport.(sharesLinks); ok {
		return shared.beginRound()
	}
	return func() {}
}

// relayRequests passes requests of other members on to Raft. Raft closes the transport after its
// own goroutines.
func (w *trackingTransport) relayRequests() {
	defer close(w.ended)
	for {
		select {
		case rpc := <-w.Transport.Consumer():
			if !w.arrive(&rpc) && !w.take(rpc, true, nil) {
				return
			}
		case <-w.quit:
			return
		}
	}
}

// Consumer returns the requests of other members and those of triggerElection.
func (w *trackingTransport) Consumer() <-chan raft.RPC { return w.requests }

// SetHeartbeatHandler does nothing: heartbeats take the same way as all requests.
func (w *trackingTransport) SetHeartbeatHandler(func(raft.RPC)) {}

// Close ends relayRequests and closes the wrapped transport.
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

// errSilent is returned while this member sends its followers nothing.
var errSilent = errors.New("cluster: this member makes no progress and sends its followers nothing")

// triggerElection makes this member stand for election at once, with the request that a leader
// sends to its successor. A leader that gets it continues in a new term or loses the leadership.
func (w *trackingTransport) triggerElection() {
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{
		Command:  &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}},
		RespChan: answer,
	}
	w.silence.note(&rpc, w.clock())
	select {
	case w.requests <- rpc:
	case <-w.quit:
	}
}

// RequestVote asks a member for its vote.
func (w *trackingTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if args.LeadershipTransfer {
		w.silence.transferred(args.Term)
	}
	return w.Transport.RequestVote(id, target, args, resp)
}

// RequestPreVote asks a member whether it would vote for this one.
func (w *trackingTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	to, ok := w.Transport.(raft.WithPreVote)
	if !ok {
		return errNoPreVote
	}
	return to.RequestPreVote(id, target, args, resp)
}

// AppendEntries sends entries or a heartbeat and records the answer.
func (w *trackingTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if w.silent.Load() {
		return errSilent
	}
	if err := w.awaitMembers(id, args); err != nil {
		return err
	}
	sent, last := w.leaseClock(), w.last()
	err := w.Transport.AppendEntries(id, target, args, resp)
	for err != nil && w.redial(err, id, args) {
		if errors.Is(err, errGroupAbsent) {
			// A heartbeat shows that the member runs now, and carries none of the entries.
			beat := &raft.AppendEntriesRequest{RPCHeader: args.RPCHeader, Term: args.Term}
			if err = w.Transport.AppendEntries(id, target, beat, &raft.AppendEntriesResponse{}); err != nil {
				continue
			}
		}
		sent, last = w.leaseClock(), w.last()
		err = w.Transport.AppendEntries(id, target, args, resp)
	}
	if err != nil {
		w.awaitRoom(err, id, args)
		return err
	}
	w.record(id, args, resp, sent, last)
	w.noteNewer(args.Term, resp.Term)
	return nil
}

// noteNewer has Raft look at a follower that answered in a newer term than the request's. Raft takes the
// term from an answer to entries, and from one to a heartbeat of a read, but not from those to its usual
// heartbeats. An idle leader would go on, and its heartbeats would keep the others from an election.
func (w *trackingTransport) noteNewer(term, answered uint64) {
	if answered <= term || w.resume == nil {
		return
	}
	w.mu.Lock()
	first := term > w.outdated
	w.outdated = max(w.outdated, term)
	w.mu.Unlock()
	if first {
		w.resume()
	}
}

// record records the answer to a request that was sent at a time, when the log ended with the entry
// last.
func (w *trackingTransport) record(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, sent int64, last uint64) {
	if resp.Term != args.Term {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case args.Term < w.term:
		return
	case args.Term > w.term:
		w.term, w.began = args.Term, sent
		clear(w.peers)
	}
	seen := w.peers[id]
	// Heartbeats and entries overtake each other. Only an answer to entries shows whether the
	// follower's log matches; after the first such answer entries go by pipeline and do not pass
	// here. So an answer to entries counts even if a later heartbeat was answered first.
	if (len(args.Entries) > 0 || args.PrevLogEntry > 0) && sent >= seen.followAsOf {
		seen.followAsOf, seen.follow = sent, resp.Success
	}
	if sent >= seen.sent {
		has := resp.LastLog // log of the follower before this request
		if n := len(args.Entries); n > 0 && resp.Success {
			has = max(has, args.Entries[n-1].Index)
		}
		seen.sent, seen.lag, seen.has = sent, last-min(last, has), has
	}
	w.peers[id] = seen
}

// tell sends a request without entries once, and records whether the follower agrees. A refusal may
// only mean that entries are still on their way to it.
func (w *trackingTransport) tell(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest) {
	if w.silent.Load() {
		return
	}
	sent, last := w.leaseClock(), w.last()
	var resp raft.AppendEntriesResponse
	if err := w.Transport.AppendEntries(id, target, args, &resp); err != nil {
		return
	}
	if resp.Success {
		w.record(id, args, &resp, sent, last)
	}
	w.noteNewer(args.Term, resp.Term)
}

// lacking reports whether a follower that answered a request sent after a moment lacks entries.
func (w *trackingTransport) lacking(after int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.peers {
		if seen.sent > after && (seen.lag > 0 || !seen.follow) {
			return true
		}
	}
	return false
}

// AppendEntriesPipeline sends entries without waiting for the answers to earlier ones.
func (w *trackingTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	to, err := w.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := newPipeline(to, w.last, w.resume)
	p.silent = &w.silent
	p.await = func(args *raft.AppendEntriesRequest) error { return w.awaitMembers(id, args) }
	return p, nil
}

// provenSince returns a moment since which no other member can have been elected in a newer term: a
// quorum of the voters answered, in this term, requests sent at that moment or later. now counts as
// this node's own answer. It returns false if no quorum has answered.
//
// Raft's own VerifyLeader proves less: it counts answers to requests sent before it was called,
// including answers that lay unread while the process was paused, and it counts members without a
// vote.
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

// caughtUpLag is the number of entries by which a follower may be behind and still count as caught
// up. It is about what is in flight under load.
const caughtUpLag = 256

// followerProgress returns how many entries a follower was behind at its last answer in the term.
// It returns false if the follower has not answered within the duration or does not take entries
// yet.
func (w *trackingTransport) followerProgress(term uint64, id raft.ServerID, within time.Duration) (lag uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, known := w.peers[id]
	if !known || w.term != term {
		return 0, false
	}
	return seen.lag, seen.follow && w.leaseClock()-seen.sent <= int64(within)
}

// followerHas returns the newest entry that a follower had at its last answer in the term.
func (w *trackingTransport) followerHas(term uint64, id raft.ServerID) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != term {
		return 0
	}
	return w.peers[id].has
}

// followerLacks reports whether a follower, at its last answer in the term, lacked an entry that was in this
// node's log when it was asked.
func (w *trackingTransport) followerLacks(term uint64, id raft.ServerID, index uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.peers[id]
	return w.term == term && seen.has < index && seen.has+seen.lag >= index
}
