package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"switchyard/storage"
)

// shardMap knows the owner of each shard from the owners' heartbeats: of two claims the one with
// the higher epoch counts. An owner that does not answer counts as unknown until it answers again
// or another node takes over.
type shardMap struct {
	self     string
	onChange func()       // called when this node's own shards change; set before use
	shards   []shardEntry // by number; published owners are read without a lock

	mu        sync.Mutex
	reachable map[string]bool          // nodes that answer and don't leave
	leaving   map[string]bool          // nodes that are about to stop
	noRoom    map[string]bool          // nodes whose disks have no room for changes
	newest    map[string]messageNumber // of each node's newest message
	changed   chan struct{}            // closed when the owner of any shard changes

	full atomic.Int32 // length of noRoom
}

// shardEntry is the state of one shard.
type shardEntry struct {
	published atomic.Pointer[publishedOwner]
	// node claimed the newest epoch; empty when it gave the shard up. Both fields are guarded by
	// shardMap.mu.
	node  string
	epoch uint64
}

// publishedOwner is the owner that requests are sent to. changed is closed when another value
// replaces it.
type publishedOwner struct {
	node    string // empty if no reachable owner is known
	epoch   uint64
	unowned time.Time // the last sign of an owner if node is empty, else zero
	changed chan struct{}
}

func newShardMap(self string, shards int) *shardMap {
	m := &shardMap{
		self: self, onChange: func() {}, shards: make([]shardEntry, shards+1),
		reachable: map[string]bool{self: true}, leaving: map[string]bool{}, noRoom: map[string]bool{}, newest: map[string]messageNumber{}, changed: make(chan struct{}),
	}
	now := time.Now()
	for i := range m.shards {
		m.shards[i].published.Store(&publishedOwner{unowned: now, changed: make(chan struct{})})
	}
	return m
}

// owner returns the node that owns a shard (empty if no reachable owner is known) and a channel
// that is closed when the answer changes.
func (m *shardMap) owner(shard storage.Shard) (node string, epoch uint64, changed <-chan struct{}) {
	if int(shard) >= len(m.shards) {
		return "", 0, nil
	}
	s := m.shards[shard].published.Load()
	return s.node, s.epoch, s.changed
}

// unowned returns since when no reachable owner of a shard is known, or the zero time if one is. An
// owner that fell silent counts until its last answer.
func (m *shardMap) unowned(shard storage.Shard) time.Time {
	if int(shard) >= len(m.shards) {
		return time.Time{}
	}
	return m.shards[shard].published.Load().unowned
}

// allOwned reports whether every shard has an owner that answers.
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

// gained records that this node owns a shard.
func (m *shardMap) gained(shard storage.Shard, epoch uint64) {
	m.mu.Lock()
	m.claim(shard, m.self, epoch)
	m.mu.Unlock()
	m.onChange()
}

// lost records that this node does not own a shard any more.
func (m *shardMap) lost(shard storage.Shard, epoch uint64) {
	m.mu.Lock()
	m.release(shard, m.self, epoch)
	m.mu.Unlock()
	m.onChange()
}

// update applies a node's message: the list of shards that it owns, whether its disk has room for changes,
// and whether it is about to stop, after which it gets no requests. Messages that arrive late are dropped.
func (m *shardMap) update(node string, message *heartbeatMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := message.number()
	if node == m.self || !number.after(m.newest[node]) {
		return
	}
	m.newest[node] = number
	if message.Leaving {
		m.leaving[node] = true
		m.reach(node, false, time.Time{})
	} else {
		delete(m.leaving, node)
	}
	m.setRoom(node, !message.NoRoom)
	says := make(map[storage.Shard]uint64, len(message.Owned))
	for _, o := range message.Owned {
		says[o.shard] = o.epoch
		m.claim(o.shard, node, o.epoch)
	}
	for i := range m.shards {
		if e := &m.shards[i]; e.node == node && says[storage.Shard(i)] != e.epoch {
			m.release(storage.Shard(i), node, e.epoch)
		}
	}
}

// setReachable records whether a node answers.
func (m *shardMap) setReachable(node string, answers bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reach(node, answers && !m.leaving[node], time.Time{})
}

// setSilent records that a node does not answer any more. silence is the time since its last answer.
func (m *shardMap) setSilent(node string, silence time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reach(node, false, time.Now().Add(-silence))
}

// reach records whether a node gets requests. sign is as for publish. The caller holds m.mu.
func (m *shardMap) reach(node string, reachable bool, sign time.Time) {
	if m.reachable[node] == reachable {
		return
	}
	if reachable {
		m.reachable[node] = true
	} else {
		delete(m.reachable, node)
	}
	for i := range m.shards {
		if m.shards[i].node == node {
			m.publish(storage.Shard(i), sign)
		}
	}
}

// isLeaving reports whether a node is about to stop.
func (m *shardMap) isLeaving(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving[node]
}

// isReachable reports whether a node answers.
func (m *shardMap) isReachable(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reachable[node]
}

// answers reports whether a node answers, or is about to stop: until then it takes part in its groups.
func (m *shardMap) answers(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reachable[node] || m.leaving[node]
}

// removeNode drops the state of a node that is not a member any more.
func (m *shardMap) removeNode(node string) {
	m.setReachable(node, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newest, node)
	delete(m.leaving, node)
	m.setRoom(node, true)
}

// setRoom records whether a node's disk has room for changes. The caller holds m.mu.
func (m *shardMap) setRoom(node string, room bool) {
	if room {
		delete(m.noRoom, node)
	} else {
		m.noRoom[node] = true
	}
	m.full.Store(int32(len(m.noRoom)))
}

// hasRoom reports whether a node's disk has room for changes, by its last message.
func (m *shardMap) hasRoom(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.noRoom[node]
}

// anyWithoutRoom reports whether the disk of any other node has no room for changes.
func (m *shardMap) anyWithoutRoom() bool { return m.full.Load() > 0 }

// claim records an owner. The caller holds m.mu.
func (m *shardMap) claim(shard storage.Shard, node string, epoch uint64) {
	if int(shard) >= len(m.shards) {
		return
	}
	e := &m.shards[shard]
	// An epoch has one owner per shard. The owner may give the shard up and take it back.
	if epoch < e.epoch {
		return
	}
	e.node, e.epoch = node, epoch
	m.publish(shard, time.Time{})
}

// release records that an owner gave its shard up. The caller holds m.mu.
func (m *shardMap) release(shard storage.Shard, node string, epoch uint64) {
	if int(shard) >= len(m.shards) {
		return
	}
	if e := &m.shards[shard]; e.node == node && e.epoch == epoch {
		e.node = ""
		m.publish(shard, time.Time{})
	}
}

// publish updates the published owner of a shard. If the shard loses its owner by that, sign is the
// time of the owner's last sign; zero means now. The caller holds m.mu.
func (m *shardMap) publish(shard storage.Shard, sign time.Time) {
	e := &m.shards[shard]
	node := e.node
	if !m.reachable[node] {
		node = ""
	}
	was := e.published.Load()
	if was.node == node && (node == "" || was.epoch == e.epoch) {
		return
	}
	next := &publishedOwner{node: node, epoch: e.epoch, changed: make(chan struct{})}
	if node == "" {
		switch {
		case !was.unowned.IsZero():
			next.unowned = was.unowned // another owner that can't be reached is no owner either
		case sign.IsZero():
			next.unowned = time.Now()
		default:
			next.unowned = sign
		}
	}
	e.published.Store(next)
	close(was.changed)
	close(m.changed)
	m.changed = make(chan struct{})
}
