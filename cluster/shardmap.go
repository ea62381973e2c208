package cluster

import (
	"sync"
	"sync/atomic"

	"switchyard/storage"
)

// shardMap knows which node owns each shard, from what the owners themselves say:
// of two claims the higher epoch is right. An owner that does not answer counts as
// none, until it answers again or another takes over.
type shardMap struct {
	self     string
	onChange func()       // called when this node's own shards change; set before use
	shards   []shardEntry // by number; what is shown is read without a lock

	mu        sync.Mutex
	reachable map[string]bool   // nodes that answer
	lastSeq   map[string]uint64 // sequence of the newest word from a node
	changed   chan struct{}     // closed when any shard's owner changes
}

// shardEntry is what is known of a shard.
type shardEntry struct {
	published atomic.Pointer[publishedOwner]
	// Guarded by shardMap.mu: who claimed the newest epoch, empty when it gave the
	// shard up.
	node  string
	epoch uint64
}

// publishedOwner is the owner requests go to; changed is closed when it is another.
type publishedOwner struct {
	node    string // empty when none is known or it does not answer
	epoch   uint64
	changed chan struct{}
}

func newShardMap(self string, shards int) *shardMap {
	m := &shardMap{
		self: self, onChange: func() {}, shards: make([]shardEntry, shards+1),
		reachable: map[string]bool{self: true}, lastSeq: map[string]uint64{}, changed: make(chan struct{}),
	}
	for i := range m.shards {
		m.shards[i].published.Store(&publishedOwner{changed: make(chan struct{})})
	}
	return m
}

// owner gives the node that owns a shard, empty when none is known that answers,
// and a channel that is closed when the answer is another.
func (m *shardMap) owner(shard storage.Shard) (node string, epoch uint64, changed <-chan struct{}) {
	if int(shard) >= len(m.shards) {
		return "", 0, nil
	}
	s := m.shards[shard].published.Load()
	return s.node, s.epoch, s.changed
}

// allOwned tells whether every shard has an owner that answers.
func (m *shardMap) allOwned() (all bool, changed <-chan struct{}) {
	m.mu.Lock()
	changed = m.changed
	m.mu.Unlock()
	for i := range m.shards {
		if m.shards[i].published.Load().node == "" {
			return false, changed
		}
	}
	return true, changed
}

// ownedShards lists the shards that this node owns.
func (m *shardMap) ownedShards() []ownedShard {
	m.mu.Lock()
	defer m.mu.Unlock()
	owned := []ownedShard{}
	for i := range m.shards {
		if e := &m.shards[i]; e.node == m.self {
			owned = append(owned, ownedShard{storage.Shard(i), e.epoch})
		}
	}
	return owned
}

// gained notes that this node owns a shard.
func (m *shardMap) gained(shard storage.Shard, epoch uint64) {
	m.mu.Lock()
	m.claim(shard, m.self, epoch)
	m.mu.Unlock()
	m.onChange()
}

// lost notes that this node owns a shard no more.
func (m *shardMap) lost(shard storage.Shard, epoch uint64) {
	m.mu.Lock()
	m.release(shard, m.self, epoch)
	m.mu.Unlock()
	m.onChange()
}

// update takes in what a node says it owns. Words that come late are dropped: seq
// grows with every word of a node.
func (m *shardMap) update(node string, seq uint64, owned []ownedShard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if node == m.self || seq <= m.lastSeq[node] {
		return
	}
	m.lastSeq[node] = seq
	says := make(map[storage.Shard]uint64, len(owned))
	for _, o := range owned {
		says[o.shard] = o.epoch
		m.claim(o.shard, node, o.epoch)
	}
	for i := range m.shards {
		if e := &m.shards[i]; e.node == node && says[storage.Shard(i)] != e.epoch {
			m.release(storage.Shard(i), node, e.epoch)
		}
	}
}

// setReachable notes whether a node answers.
func (m *shardMap) setReachable(node string, answers bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reachable[node] == answers {
		return
	}
	if answers {
		m.reachable[node] = true
	} else {
		delete(m.reachable, node)
	}
	for i := range m.shards {
		if m.shards[i].node == node {
			m.publish(storage.Shard(i))
		}
	}
}

// isReachable tells whether a node answers.
func (m *shardMap) isReachable(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reachable[node]
}

// removeNode drops what is kept of a node that is no member any more.
func (m *shardMap) removeNode(node string) {
	m.setReachable(node, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lastSeq, node)
}

// claim notes an owner; m.mu is held.
func (m *shardMap) claim(shard storage.Shard, node string, epoch uint64) {
	if int(shard) >= len(m.shards) {
		return
	}
	e := &m.shards[shard]
	// Within an epoch a shard has one owner, who may give it up and take it back.
	if epoch < e.epoch {
		return
	}
	e.node, e.epoch = node, epoch
	m.publish(shard)
}

// release notes that an owner gave up; m.mu is held.
func (m *shardMap) release(shard storage.Shard, node string, epoch uint64) {
	if int(shard) >= len(m.shards) {
		return
	}
	if e := &m.shards[shard]; e.node == node && e.epoch == epoch {
		e.node = ""
		m.publish(shard)
	}
}

// publish brings what is shown of a shard in step; m.mu is held.
func (m *shardMap) publish(shard storage.Shard) {
	e := &m.shards[shard]
	node := e.node
	if !m.reachable[node] {
		node = ""
	}
	was := e.published.Load()
	if was.node == node && (node == "" || was.epoch == e.epoch) {
		return
	}
	e.published.Store(&publishedOwner{node: node, epoch: e.epoch, changed: make(chan struct{})})
	close(was.changed)
	close(m.changed)
	m.changed = make(chan struct{})
}
