package cluster

import "sync"

// installGuard keeps a shard's state from being replaced while this node serves it. A deposed
// leader may be sent a snapshot before its lead goroutine has noticed that it does not lead any
// more.
type installGuard struct {
	mu         sync.Mutex
	serving    bool
	installing bool
}

// beginServing starts serving; it returns false while a snapshot is being installed.
func (t *installGuard) beginServing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serving = !t.installing
	return t.serving
}

// endServing ends serving.
func (t *installGuard) endServing() {
	t.mu.Lock()
	t.serving = false
	t.mu.Unlock()
}

// beginInstall starts an install; it returns false while the shard is served.
func (t *installGuard) beginInstall() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.installing = !t.serving
	return t.installing
}

// endInstall ends an install.
func (t *installGuard) endInstall() {
	t.mu.Lock()
	t.installing = false
	t.mu.Unlock()
}
