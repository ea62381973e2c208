package cluster

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// shardTransport is the transport of one group over the peer port: connections that all groups share
// for entries and for small messages, and streams of the group's own for snapshots. Where the other
// node does not know the shared connections, the streams carry everything.
type shardTransport struct {
	*raft.NetworkTransport
	peers   *peerPort
	shard   storage.Shard
	streams *connListener
	urgent  atomic.Int32                // rounds under way that wait for heartbeats
	member  atomic.Pointer[groupMember] // nil: the group takes no requests yet
	ctx     context.Context             // ends with the transport
	cancel  context.CancelFunc
}

// transportFor returns the transport of a shard's group. It finds nodes by their names.
func (p *peerPort) transportFor(shard storage.Shard) raft.Transport {
	h := newConnListener(nodeAddr(p.cfg.Self().node))
	t := &shardTransport{peers: p, shard: shard, streams: h}
	t.ctx, t.cancel = context.WithCancel(p.ctx)
	t.NetworkTransport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Logger:  raftLogger{p.cfg.Logger.With("shard", int(shard), "component", "raft")},
		Stream:  &shardStreams{connListener: h, peers: p, shard: shard},
		MaxPool: raftPool,
		Timeout: p.limit(raftTimeout),
	})
	p.mu.Lock()
	if p.closed {
		_ = h.Close()
	}
	p.groups[shard] = t
	p.mu.Unlock()
	return t
}

// send sends a message by the shared connection.
func (t *shardTransport) send(target raft.ServerAddress, m groupMessage, urgent bool) (groupAnswer, error) {
	m.shard = t.shard
	return t.peers.sendGroup(t.ctx, string(target), m, urgent)
}

// AppendEntries sends entries or a heartbeat.
func (t *shardTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	var a groupAnswer
	var err error
	if isHeartbeat(args) {
		a, err = t.send(target, groupMessage{kind: messageHeartbeat, term: args.Term}, t.urgent.Load() > 0)
	} else {
		a, err = t.sendEntries(target, args)
	}
	if errors.Is(err, errOldPeer) {
		return t.NetworkTransport.AppendEntries(id, target, args, resp)
	}
	if err != nil {
		return err
	}
	a.appendResponse(resp)
	return nil
}

// sendEntries sends entries and waits for the answer.
func (t *shardTransport) sendEntries(target raft.ServerAddress, args *raft.AppendEntriesRequest) (groupAnswer, error) {
	l, err := t.peers.entriesLink(string(target))
	if err != nil {
		return groupAnswer{}, err
	}
	sent, err := l.send(t.shard, args)
	if err != nil {
		return groupAnswer{}, err
	}
	return sent.await(t.ctx)
}

// AppendEntriesPipeline returns a pipeline to a member.
func (t *shardTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	l, err := t.peers.entriesLink(string(target))
	if err != nil {
		return nil, err
	}
	if _, err = l.connection(); errors.Is(err, errOldPeer) {
		return t.NetworkTransport.AppendEntriesPipeline(id, target)
	}
	if err != nil {
		return nil, err
	}
	return newEntriesPipeline(t.ctx, l, t.shard), nil
}

// RequestPreVote asks a member whether it would vote for this one.
func (t *shardTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	a, err := t.send(target, groupMessage{kind: messagePreVote, term: args.Term, lastIndex: args.LastLogIndex, lastTerm: args.LastLogTerm}, true)
	if errors.Is(err, errOldPeer) {
		return t.NetworkTransport.RequestPreVote(id, target, args, resp)
	}
	if err != nil {
		return err
	}
	*resp = raft.RequestPreVoteResponse{RPCHeader: answerHeader, Term: a.term, Granted: a.result == groupAgrees}
	return nil
}

// RequestVote asks a member for its vote.
func (t *shardTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	m := groupMessage{kind: messageVote, term: args.Term, lastIndex: args.LastLogIndex, lastTerm: args.LastLogTerm}
	if args.LeadershipTransfer {
		m.kind = messageTransfer
	}
	a, err := t.send(target, m, true)
	if errors.Is(err, errOldPeer) {
		return t.NetworkTransport.RequestVote(id, target, args, resp)
	}
	if err != nil {
		return err
	}
	*resp = raft.RequestVoteResponse{RPCHeader: answerHeader, Term: a.term, Granted: a.result == groupAgrees}
	return nil
}

// standTime bounds the wait for the answer of a member that is told to stand for election. It is less than
// Raft gives a hand-over, so that another successor can be tried.
const standTime = electionTimeout / 2

// TimeoutNow tells a member to stand for election. Raft refuses all changes until it returns, also those
// of a newer term: a member whose Raft hangs must not hold it up for longer than the hand-over may take.
func (t *shardTransport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	ctx, cancel := context.WithTimeoutCause(t.ctx, t.peers.limit(standTime), errGroupTimeout)
	defer cancel()
	_, err := t.peers.sendGroup(ctx, string(target), groupMessage{kind: messageStand, shard: t.shard}, true)
	if err != nil && errors.Is(context.Cause(ctx), errGroupTimeout) {
		return errGroupTimeout
	}
	if errors.Is(err, errOldPeer) {
		return t.NetworkTransport.TimeoutNow(id, target, args, resp)
	}
	if err != nil {
		return err
	}
	*resp = raft.TimeoutNowResponse{RPCHeader: answerHeader}
	return nil
}

// answerHeader is the header of answers that came by the shared connection. Raft does not read it.
var answerHeader = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}

// beginRound lets the heartbeats of this group, and those that wait, go at once until the round ends.
func (t *shardTransport) beginRound() (end func()) {
	t.urgent.Add(1)
	t.peers.hurryGroups()
	return func() { t.urgent.Add(-1) }
}

// setMember sets the member that the requests are for.
func (t *shardTransport) setMember(member groupMember) { t.member.Store(&member) }

// groupMember returns the member of a shard's group, or nil if none takes requests.
func (p *peerPort) groupMember(shard storage.Shard) groupMember {
	p.mu.Lock()
	t := p.groups[shard]
	p.mu.Unlock()
	if t == nil {
		return nil
	}
	if member := t.member.Load(); member != nil {
		return *member
	}
	return nil
}

// Close closes the group's streams and ends the wait for answers.
func (t *shardTransport) Close() error {
	t.cancel()
	return t.NetworkTransport.Close()
}
