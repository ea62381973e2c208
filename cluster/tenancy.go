package cluster

import "sync"

// tenancy keeps a shard's state from being replaced while this node serves it. A
// deposed leader may be sent a snapshot before its own goroutine has learnt that it
// leads no more.
type tenancy struct {
	mu        sync.Mutex
	serving   bool
	replacing bool
}

// serve begins the service; false while the state is being replaced.
func (t *tenancy) serve() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serving = !t.replacing
	return t.serving
}

// leave ends the service.
func (t *tenancy) leave() {
	t.mu.Lock()
	t.serving = false
	t.mu.Unlock()
}

// replace begins a replacement; false while the shard is served.
func (t *tenancy) replace() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replacing = !t.serving
	return t.replacing
}

// replaced ends a replacement.
func (t *tenancy) replaced() {
	t.mu.Lock()
	t.replacing = false
	t.mu.Unlock()
}
