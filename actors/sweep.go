package actors

import "time"

// sweepsPerIdle is the number of sweeps within Limits.Idle, and so the number of times
// that a sweep must find a workspace unused.
const sweepsPerIdle = 4

// sweep passivates idle workspaces until the engine is closed.
func (e *Engine) sweep() {
	defer e.background.leave()
	tick := time.NewTicker(max(e.cfg.Limits.Idle/sweepsPerIdle, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.stopped.Done():
			return
		case <-tick.C:
			e.lists.sweep()
			e.sweepOnce(func(h *handle) bool {
				if h.used.Swap(false) {
					h.idle = 0
				} else {
					h.idle++
				}
				return h.idle >= sweepsPerIdle
			})
		}
	}
}

// sweepOnce passivates the handles for which idle returns true.
func (e *Engine) sweepOnce(idle func(*handle) bool) {
	var found []*handle
	for _, s := range e.shards {
		found = found[:0]
		s.mu.RLock()
		for _, h := range s.handles {
			found = append(found, h)
		}
		s.mu.RUnlock()
		for _, h := range found {
			if idle(h) {
				s.passivate(h)
			}
		}
	}
}

// evictSample is the number of a shard's workspaces that are tried to find one that can
// be passivated.
const evictSample = 16

// evict passivates a workspace without commands to make room for another, at the cost
// of activating it again later. It returns false if it finds none.
func (e *Engine) evict() bool {
	var found []*handle
	for _, s := range e.shards {
		found = found[:0]
		s.mu.RLock()
		for _, h := range s.handles { // in random order
			if found = append(found, h); len(found) == evictSample {
				break
			}
		}
		s.mu.RUnlock()
		for _, h := range found {
			if s.passivate(h) {
				return true
			}
		}
	}
	return false
}
