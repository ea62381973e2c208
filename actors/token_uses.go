package actors

import (
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// tokenUses collects the uses of workspace tokens, which are recorded apart from the
// requests. A use that can't be recorded is dropped; a later one will be.
type tokenUses struct {
	mu      sync.Mutex // guards the fields below; never held while waiting
	waiting map[tokenName]time.Time
	writing bool
}

// tokenName is a workspace token and its home workspace.
type tokenName struct{ home, id storage.ID }

const (
	// tokenUsesLinger is the time that a use waits for others.
	tokenUsesLinger = time.Second
	// tokenUsesMost is the number of tokens with a waiting use; a use of another token
	// is dropped.
	tokenUsesMost = 4096
	// tokenUsesBatch is the number of uses in one command.
	tokenUsesBatch = 256
)

// noteUse records a use of an admitted caller's token, unless one was recorded within
// tracker.TokenUseNoted.
func (e *Engine) noteUse(a *admission, now time.Time) {
	if a.caller.Kind != tracker.WorkspaceToken {
		return
	}
	last := a.used.Load()
	if now.UnixMilli()-last < tracker.TokenUseNoted.Milliseconds() || !a.used.CompareAndSwap(last, now.UnixMilli()) {
		return
	}
	id, ok := storage.ParseID(a.caller.Token)
	if !ok || !e.addUse(tokenName{a.caller.Home, id}, now) {
		a.used.Store(last)
	}
}

// addUse adds a use to be recorded; it returns false if too many are waiting.
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

// writeUses records uses until none is waiting.
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

// takeUses takes all waiting uses, by workspace. It returns nil if there are none, and
// then the writer must end.
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
	req := tracker.DeferrableRequest("token uses", home)
	req.Deadline = time.Now().Add(e.cfg.Limits.Answer)
	if _, err := e.step(req, tracker.NoteTokenUses, &tracker.TokenUses{Uses: uses}); err != nil {
		e.log.Debug("record uses of tokens", "workspace", home.String(), "tokens", len(uses), "error", err)
	}
}
