package actors

import (
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// tokenUses gathers which workspace tokens are used, to write it down apart from the
// requests. What can't be written is dropped: a later use is noted instead.
type tokenUses struct {
	mu      sync.Mutex // guards the rest; never held while waiting for anything
	waiting map[tokenName]time.Time
	writing bool
}

// tokenName is a workspace token and the workspace that keeps it.
type tokenName struct{ home, id storage.ID }

const (
	// tokenUsesLinger is how long a use waits for others to go along.
	tokenUsesLinger = time.Second
	// tokenUsesMost is how many tokens may wait to be noted; others have to be used
	// again.
	tokenUsesMost = 4096
	// tokenUsesBatch is how many go into one command.
	tokenUsesBatch = 256
)

// noteUse notes that an admitted caller's token is used, unless that was noted within
// tracker.TokenUseNoted.
func (e *Engine) noteUse(a *admission) {
	if a.caller.Kind != tracker.WorkspaceToken {
		return
	}
	now := e.now()
	last := a.used.Load()
	if now.UnixMilli()-last < tracker.TokenUseNoted.Milliseconds() || !a.used.CompareAndSwap(last, now.UnixMilli()) {
		return
	}
	id, ok := storage.ParseID(a.caller.Token)
	if !ok || !e.addUse(tokenName{a.caller.Home, id}, now) {
		a.used.Store(last)
	}
}

// addUse takes a use to be written; false when too many wait.
func (e *Engine) addUse(name tokenName, at time.Time) bool {
	u := &e.tokenUses
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, waits := u.waiting[name]; !waits && len(u.waiting) >= tokenUsesMost {
		return false
	}
	if u.waiting == nil {
		u.waiting = map[tokenName]time.Time{}
	}
	u.waiting[name] = at
	if !u.writing && e.background.enter() {
		u.writing = true
		go e.writeUses()
	}
	return true
}

// writeUses writes what waits until nothing does.
func (e *Engine) writeUses() {
	defer e.background.leave()
	timer := time.NewTimer(tokenUsesLinger)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.stopped.Done():
			return
		}
		uses := e.takeUses()
		if uses == nil {
			return
		}
		for home, list := range uses {
			for len(list) > 0 {
				n := min(len(list), tokenUsesBatch)
				e.recordUses(home, list[:n])
				list = list[n:]
			}
		}
		timer.Reset(tokenUsesLinger)
	}
}

// takeUses takes all that waits, by workspace; nil when nothing does, and the writer
// has ended.
func (e *Engine) takeUses() map[storage.ID][]tracker.TokenUse {
	u := &e.tokenUses
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.waiting) == 0 {
		u.writing = false
		return nil
	}
	uses := map[storage.ID][]tracker.TokenUse{}
	for name, at := range u.waiting {
		uses[name.home] = append(uses[name.home], tracker.TokenUse{ID: name.id, At: tracker.At(at)})
	}
	u.waiting = nil
	return uses
}

func (e *Engine) recordUses(home storage.ID, uses []tracker.TokenUse) {
	req := tracker.ServiceRequest("token uses", home)
	req.Deadline = time.Now().Add(e.cfg.Limits.Answer)
	if _, err := e.step(req, tracker.NoteTokenUses, &tracker.TokenUses{Uses: uses}); err != nil {
		e.log.Debug("the use of tokens was not noted", "workspace", home.String(), "tokens", len(uses), "error", err)
	}
}
