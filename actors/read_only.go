package actors

import (
	"sync"
	"sync/atomic"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// readOnlyModes caches which workspaces of a shard are read-only (Decision 71).
type readOnlyModes struct {
	mu sync.Mutex // held while the modes are read or forgotten
	// known is nil if the modes must be read from the shard's state.
	known atomic.Pointer[tracker.ReadOnlySet]
}

// readOnly returns the read-only modes of an owned shard.
func (s *shard) readOnly() (*tracker.ReadOnlySet, error) {
	m := &s.modes
	if set := m.known.Load(); set != nil {
		return set, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.known.Load(); set != nil {
		return set, nil
	}
	of := func(workspace storage.ID) storage.View { return storage.NewView(s.engine.state, s.number, workspace) }
	v := of(storage.SystemID)
	set, err := tracker.ListReadOnly(&v, of)
	if err != nil {
		return nil, err
	}
	m.known.Store(set)
	return set, nil
}

// forgetReadOnly makes the modes be read again.
func (s *shard) forgetReadOnly() {
	s.modes.mu.Lock()
	defer s.modes.mu.Unlock()
	s.modes.known.Store(nil)
}

// readOnlyChanged takes note of a changed mode of a workspace, or of the service: what waited
// for its end goes on.
func (s *shard) readOnlyChanged(workspace storage.ID) {
	s.forgetReadOnly()
	if !workspace.IsService() {
		s.deliver(workspace, tracker.DirtyOutbox|tracker.DirtyWebhooks, nil)
		return
	}
	s.mu.RLock()
	d := s.dispatcher
	s.mu.RUnlock()
	if d != nil {
		d.Restart()
	}
}
