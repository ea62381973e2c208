package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchyard/storage"
)

// pulse keeps asking every other node whether it is there. A question carries what
// this node owns and the answer what the other one does, so that the shard map
// follows an owner's word within milliseconds, and a node that answers nobody within
// two seconds. One mechanism for both keeps them from contradicting each other.
type pulse struct {
	cfg pulseConfig

	speaking sync.Mutex
	last     uint64 // number of the newest word
	leaving  bool   // under speaking

	wake   chan struct{} // capacity 1: ask all now
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	peers map[string]*pulsePeer
}

// pulseConfig is what the pulse needs.
type pulseConfig struct {
	Members func() []string     // all others
	Owned   func() []ownedShard // what this node owns
	Ask     func(ctx context.Context, node string, body []byte) ([]byte, error)
	Map     func() *shardMap
	// CutOff ends what waits for a node that does not answer any more.
	CutOff func(node string)
	Clock  func() time.Time
}

// pulsePeer is one other node.
type pulsePeer struct {
	asking   bool
	again    bool // something changed while asking
	answered time.Time
}

const (
	pulseEvery = 500 * time.Millisecond
	// pulseLost is how long a node may not answer before it counts as unreachable.
	pulseLost = 1500 * time.Millisecond
	// pulseTimeout bounds one question: with the interval it stays below two seconds.
	pulseTimeout = time.Second
)

// ownedShard is a shard and the epoch in which a node owns it; [shard, epoch] as
// JSON.
type ownedShard struct {
	shard storage.Shard
	epoch uint64
}

// MarshalJSON implements json.Marshaler.
func (o ownedShard) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", o.shard, o.epoch), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *ownedShard) UnmarshalJSON(b []byte) error {
	var pair [2]uint64
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if pair[0] > MaxShards {
		return errNoShard
	}
	o.shard, o.epoch = storage.Shard(pair[0]), pair[1]
	return nil
}

// ping is both question and answer.
type ping struct {
	Seq   uint64       `json:"seq"`
	Owned []ownedShard `json:"owned"`
	// Leaving: the node is about to stop; nothing new is to be given to it.
	Leaving bool `json:"leaving,omitempty"`
}

func newPulse(cfg pulseConfig) *pulse {
	p := &pulse{cfg: cfg, wake: make(chan struct{}, 1), peers: map[string]*pulsePeer{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// run asks until close.
func (p *pulse) run() { p.ended.Go(p.loop) }

// close stops asking and waits for questions under way.
func (p *pulse) close() {
	p.cancel()
	p.ended.Wait()
}

// leave has everybody know that this node is about to stop.
func (p *pulse) leave() {
	p.speaking.Lock()
	p.leaving = true
	p.speaking.Unlock()
	p.tell()
}

// tell asks all now: what this node owns has changed, or there is a new member.
func (p *pulse) tell() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to
	}
}

func (p *pulse) loop() {
	ticker := time.NewTicker(pulseEvery)
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

// round asks every member that is not being asked, and gives up those that did not
// answer for too long.
func (p *pulse) round() {
	now := p.cfg.Clock()
	members := p.cfg.Members()
	p.mu.Lock()
	there := make(map[string]bool, len(members))
	for _, node := range members {
		there[node] = true
		if p.peers[node] == nil {
			p.peers[node] = &pulsePeer{}
		}
	}
	var ask, lost, gone []string
	for node, peer := range p.peers {
		if !there[node] {
			delete(p.peers, node)
			gone = append(gone, node)
			continue
		}
		if !peer.answered.IsZero() && now.Sub(peer.answered) >= pulseLost {
			peer.answered = time.Time{}
			lost = append(lost, node)
		}
		if peer.asking {
			peer.again = true
			continue
		}
		peer.asking, peer.again = true, false
		ask = append(ask, node)
	}
	p.mu.Unlock()
	for _, node := range lost {
		p.cfg.Map().reach(node, false)
		p.cfg.CutOff(node)
	}
	for _, node := range gone {
		p.cfg.Map().forget(node)
		p.cfg.CutOff(node)
	}
	for _, node := range ask {
		p.ended.Go(func() { p.ask(node) })
	}
}

// ask puts the question, again when something changed meanwhile.
func (p *pulse) ask(node string) {
	for {
		answer, err := p.question(node)
		p.mu.Lock()
		peer := p.peers[node]
		if peer == nil { // no member any more
			p.mu.Unlock()
			return
		}
		again := err == nil && peer.again && p.ctx.Err() == nil
		peer.again = false
		if !again {
			peer.asking = false
		}
		if err == nil {
			peer.answered = p.cfg.Clock()
		}
		p.mu.Unlock()
		if err == nil {
			p.cfg.Map().hear(node, answer.Seq, answer.Owned)
			p.cfg.Map().reach(node, !answer.Leaving)
		}
		if !again {
			return
		}
	}
}

func (p *pulse) question(node string) (answer ping, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, pulseTimeout)
	defer cancel()
	body, err := p.word()
	if err != nil {
		return answer, err
	}
	reply, err := p.cfg.Ask(ctx, node, body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return answer, fmt.Errorf("read a ping: %w", err)
	}
	return answer, nil
}

// word is what this node has to say: of two words the one with the higher number
// is the newer.
func (p *pulse) word() ([]byte, error) {
	p.speaking.Lock()
	defer p.speaking.Unlock()
	// The clock keeps a restarted node's words newer than those before.
	p.last = max(p.last+1, uint64(p.cfg.Clock().UnixNano()))
	return json.Marshal(ping{Seq: p.last, Owned: p.cfg.Owned(), Leaving: p.leaving})
}

// answer is the handler of rpcPing.
func (p *pulse) answer(_ context.Context, from string, body []byte) ([]byte, error) {
	var asked ping
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("read a ping: %w", err)
	}
	p.cfg.Map().hear(from, asked.Seq, asked.Owned)
	if asked.Leaving {
		p.cfg.Map().reach(from, false)
	}
	return p.word()
}
