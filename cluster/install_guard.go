package cluster

import "sync"

// installGuard keeps a shard's state from being replaced while this node serves it. A
// deposed leader may be sent a snapshot before its own goroutine has learnt that it
// leads no more.
type installGuard struct {
	mu         sync.Mutex
	serving    bool
	installing bool
}

// beginServing begins the service; false while the state is being replaced.
func (t *installGuard) beginServing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serving = !t.installing
	return t.serving
}

// endServing ends the service.
func (t *installGuard) endServing() {
	t.mu.Lock()
	t.serving = false
	t.mu.Unlock()
}

// beginInstall begins a replacement; false while the shard is served.
func (t *installGuard) beginInstall() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.installing = !t.serving
	return t.installing
}

// endInstall ends a replacement.
func (t *installGuard) endInstall() {
	t.mu.Lock()
	t.installing = false
	t.mu.Unlock()
}
