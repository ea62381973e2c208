package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	gojson "github.com/goccy/go-json"

	"switchyard/storage"
)

// heartbeat exchanges messages with every other node. Both directions of an exchange list the
// shards that the sender owns, so the shard map learns of a new owner within milliseconds, and of a
// node that does not answer within two seconds. One mechanism for both keeps the two from
// contradicting each other.
type heartbeat struct {
	cfg heartbeatConfig

	sendMu  sync.Mutex
	seq     uint64 // number of the newest message
	leaving bool   // under sendMu

	wake   chan struct{} // capacity 1: send to all nodes now
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup

	missing atomic.Bool // a node did not answer lately

	mu    sync.Mutex
	peers map[string]*heartbeatPeer
}

// heartbeatConfig configures heartbeats.
type heartbeatConfig struct {
	Members     func() []string     // all other nodes
	Owned       func() []ownedShard // shards of this node
	Send        func(ctx context.Context, node string, body []byte) ([]byte, error)
	Map         func() *shardMap
	Generations *generations
	// NoRoom reports whether this node's disk has no room for changes; nil means never.
	NoRoom func() bool
	// Fatal is told that another node has seen this one with newer data.
	Fatal func(error)
	// Refused is told of a node that refuses this one as no member of the cluster.
	Refused func(node string)
	// Disconnect closes connections on which requests wait for a node that does not answer.
	Disconnect func(node string)
	Clock      func() time.Time
	// Clocks is told of the other nodes' clocks.
	Clocks *peerClocks
}

// heartbeatPeer is the state of one other node.
type heartbeatPeer struct {
	sending  bool
	again    bool // something changed during the exchange
	answered time.Time
}

// silentNode is a node that does not answer any more, and the time since its last answer.
type silentNode struct {
	node    string
	silence time.Duration
}

const (
	heartbeatInterval = 500 * time.Millisecond
	// heartbeatLost is the silence after which a node counts as unreachable.
	heartbeatLost = 1500 * time.Millisecond
	// heartbeatTimeout bounds one exchange. Together with the interval it stays below two seconds.
	heartbeatTimeout = time.Second
)

// ownedShard is a shard and the epoch of its owner.
type ownedShard struct {
	shard storage.Shard
	epoch uint64
}

// ownedShards are the shards of a node. Their JSON form is a list of pairs [shard, epoch]. A node
// sends all of its shards to all others twice a second.
type ownedShards []ownedShard

// MarshalJSON implements json.Marshaler.
func (o ownedShards) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	b := append(make([]byte, 0, 16*len(o)+2), '[')
	for i, s := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, '['), uint64(s.shard), 10)
		b = append(strconv.AppendUint(append(b, ','), s.epoch, 10), ']')
	}
	return append(b, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *ownedShards) UnmarshalJSON(b []byte) error {
	var pairs [][2]uint64
	if err := gojson.Unmarshal(b, &pairs); err != nil {
		return err
	}
	if *o = nil; pairs != nil {
		*o = make(ownedShards, len(pairs))
	}
	for i, pair := range pairs {
		if pair[0] > MaxShards {
			return errNoShard
		}
		(*o)[i] = ownedShard{storage.Shard(pair[0]), pair[1]}
	}
	return nil
}

// heartbeatMessage is both the request and the answer of an exchange.
type heartbeatMessage struct {
	Seq   uint64      `json:"seq"`
	Owned ownedShards `json:"owned"`
	// Leaving is set when the node is about to stop; no new work is given to it.
	Leaving bool `json:"leaving,omitempty"`
	// NoRoom is set while the sender takes no changes of the shards that it follows; versions without it
	// never set it.
	NoRoom bool `json:"noRoom,omitempty"`
	// Clock is the sender's time in Unix nanoseconds; versions without it send none.
	Clock int64 `json:"clock,omitempty"`
	// Generation is that of the sender's data directory; versions without it send none.
	Generation generation `json:"generation,omitzero"`
}

// messageNumber is the place of a message among those of its node.
type messageNumber struct {
	of  generation
	seq uint64
}

func (m *heartbeatMessage) number() messageNumber { return messageNumber{m.Generation, m.Seq} }

// after reports whether a message is newer than another one of its node. Each start numbers its
// messages from the time of day, which may be set back between two starts.
func (n messageNumber) after(other messageNumber) bool {
	if n.of.Start == other.of.Start {
		return n.seq > other.seq
	}
	return !n.of.older(other.of)
}

func newHeartbeat(cfg heartbeatConfig) *heartbeat {
	p := &heartbeat{cfg: cfg, wake: make(chan struct{}, 1), peers: map[string]*heartbeatPeer{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// run sends heartbeats until close.
func (p *heartbeat) run() { p.ended.Go(p.loop) }

// close stops the heartbeats and waits for exchanges under way.
func (p *heartbeat) close() {
	p.cancel()
	p.ended.Wait()
}

// announceLeaving tells all nodes that this node is about to stop.
func (p *heartbeat) announceLeaving() {
	p.sendMu.Lock()
	p.leaving = true
	p.sendMu.Unlock()
	p.sendNow()
}

// sendNow sends to all nodes at once: the shards of this node or the members have changed.
func (p *heartbeat) sendNow() {
	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

func (p *heartbeat) loop() {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		p.round()
		select {
		case <-ticker.C:
		case <-p.wake:
		case <-p.ctx.Done():
			return
		}
	}
}

// round starts an exchange with every node that has none under way, and marks nodes that have been
// silent for too long as unreachable.
func (p *heartbeat) round() {
	now := p.cfg.Clock()
	members := p.cfg.Members()
	p.mu.Lock()
	there := make(map[string]bool, len(members))
	for _, node := range members {
		there[node] = true
		if p.peers[node] == nil {
			p.peers[node] = &heartbeatPeer{}
		}
	}
	var ask, gone []string
	var lost []silentNode
	missing := false
	for node, peer := range p.peers {
		if !there[node] {
			delete(p.peers, node)
			gone = append(gone, node)
			continue
		}
		if silence := now.Sub(peer.answered); !peer.answered.IsZero() && silence >= heartbeatLost {
			peer.answered = time.Time{}
			// Any longer silence is this node's own: it was paused, and the other one may answer at once.
			lost = append(lost, silentNode{node, min(silence, heartbeatLost+heartbeatInterval)})
		}
		missing = missing || peer.answered.IsZero()
		if peer.sending {
			peer.again = true
			continue
		}
		peer.sending, peer.again = true, false
		ask = append(ask, node)
	}
	p.mu.Unlock()
	p.missing.Store(missing)
	for _, l := range lost {
		p.cfg.Map().setSilent(l.node, l.silence)
		p.cfg.Disconnect(l.node)
	}
	for _, node := range gone {
		p.cfg.Map().removeNode(node)
		p.cfg.Clocks.forget(node)
		p.cfg.Generations.forget(node)
		p.cfg.Disconnect(node)
	}
	for _, node := range ask {
		p.ended.Go(func() { p.sendUntilCurrent(node) })
	}
}

// sendUntilCurrent makes exchanges with a node until the node has the newest message.
func (p *heartbeat) sendUntilCurrent(node string) {
	for {
		answer, err := p.exchange(node)
		p.mu.Lock()
		peer := p.peers[node]
		if peer == nil { // the node is not a member any more
			p.mu.Unlock()
			return
		}
		again := err == nil && peer.again && p.ctx.Err() == nil
		peer.again = false
		if !again {
			peer.sending = false
		}
		if err == nil {
			peer.answered = p.cfg.Clock()
		}
		p.mu.Unlock()
		if err == nil {
			p.cfg.Map().update(node, &answer)
			p.cfg.Map().setReachable(node, true)
		}
		if !again {
			return
		}
	}
}

func (p *heartbeat) exchange(node string) (answer heartbeatMessage, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, heartbeatTimeout)
	defer cancel()
	now := p.cfg.Generations.current()
	body, err := p.message()
	if err != nil {
		return answer, err
	}
	began := p.cfg.Clock()
	reply, err := p.cfg.Send(ctx, node, body)
	// A connection that was dialed just before this node counted on may be refused, since another one
	// came with the new count. The next message shows whether the data is older.
	if refusesData(err) && p.cfg.Generations.current() == now {
		p.cfg.Fatal(fmt.Errorf("node %q: %w", node, errOlderData))
	}
	if errors.Is(err, errNoMember) {
		p.cfg.Refused(node)
	}
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return answer, fmt.Errorf("read a heartbeat: %w", err)
	}
	if !p.cfg.Generations.accepts(node, answer.Generation) {
		return answer, fmt.Errorf("node %q: %w", node, errOlderData)
	}
	if answer.Clock != 0 {
		p.cfg.Clocks.note(node, time.Unix(0, answer.Clock), began, p.cfg.Clock())
	}
	return answer, nil
}

// message encodes this node's state. Of two messages of one process the one with the higher number is
// newer.
func (p *heartbeat) message() ([]byte, error) {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	// Versions that don't compare generations need numbers that grow across a restart of the node.
	now := p.cfg.Clock().UnixNano()
	p.seq = max(p.seq+1, uint64(now))
	return json.Marshal(heartbeatMessage{
		Seq: p.seq, Owned: p.cfg.Owned(), Leaving: p.leaving, NoRoom: p.cfg.NoRoom != nil && p.cfg.NoRoom(),
		Clock: now, Generation: p.cfg.Generations.current(),
	})
}

// answer handles rpcHeartbeat.
func (p *heartbeat) answer(_ context.Context, from string, body []byte) ([]byte, error) {
	var asked heartbeatMessage
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("read a heartbeat: %w", err)
	}
	if !p.cfg.Generations.accepts(from, asked.Generation) {
		return nil, fmt.Errorf("node %q: %w", from, errOlderData)
	}
	p.cfg.Map().update(from, &asked)
	return p.message()
}
