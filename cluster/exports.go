package cluster

import (
	"sync"
	"time"

	"switchyard/storage"
)

// exports keeps account of the shards that are being sent to followers. Few are at
// a time, since each costs disk space and bandwidth; and the logs of those shards are
// kept a while, so that a follower that has just been brought up finds what happened
// meanwhile instead of being sent everything again.
type exports struct {
	places chan struct{}

	mu     sync.Mutex
	active map[storage.Shard]int
	ended  map[storage.Shard]time.Time // of the last, when none is active
}

const (
	// maxExports are sent at once by a node.
	maxExports = 2
	// exportGrace is how long after an export the shard's log is kept whole.
	exportGrace = 30 * time.Second
	// exportFactor times its usual bound, a log is truncated all the same.
	exportFactor = 8
)

func newExports() *exports {
	return &exports{places: make(chan struct{}, maxExports), active: map[storage.Shard]int{}, ended: map[storage.Shard]time.Time{}}
}

// begin waits for a place; the returned function gives it back.
func (e *exports) begin(shard storage.Shard, quit <-chan struct{}) (release func(), err error) {
	select {
	case e.places <- struct{}{}:
	case <-quit:
		return nil, errClosing
	}
	e.mu.Lock()
	e.active[shard]++
	e.mu.Unlock()
	return sync.OnceFunc(func() {
		e.mu.Lock()
		if e.active[shard]--; e.active[shard] == 0 {
			delete(e.active, shard)
			e.ended[shard] = time.Now()
		}
		e.mu.Unlock()
		<-e.places
	}), nil
}

// needs tells whether a follower may still need the shard's log.
func (e *exports) needs(shard storage.Shard) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active[shard] > 0 {
		return true
	}
	at, ok := e.ended[shard]
	if ok && time.Since(at) >= exportGrace {
		delete(e.ended, shard)
		ok = false
	}
	return ok
}
