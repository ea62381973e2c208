package httpapi

import (
	"sync"

	"switchyard/actors/tracker"
)

// messageTurn is the turn by which the SDK works on a message. The SDK takes a millisecond of processor time and more,
// so messages take turns, by workspace. While the tool runs, and while its caller's rights are looked at, there is no
// turn: either may wait, the tool also for a turn of its own.
type messageTurn struct {
	mu   sync.Mutex // nothing waits while it is held
	end  func()     // nil: there is no turn
	over bool       // the message has its answer
}

// begin waits for a turn. The caller ends it with leave.
func (t *messageTurn) begin(s *Server, req *tracker.Request) error {
	end, err := s.engine().TakeTurn(req, false)
	if err != nil {
		return err
	}
	t.end = end
	return nil
}

// pause gives the turn back.
func (t *messageTurn) pause() { t.give(false) }

// leave gives the turn back for good.
func (t *messageTurn) leave() { t.give(true) }

func (t *messageTurn) give(over bool) {
	t.mu.Lock()
	end := t.end
	t.end, t.over = nil, t.over || over
	t.mu.Unlock()
	if end != nil {
		end()
	}
}

// goOn waits for another turn. If there is none in time the message goes on without: its tool may have made a
// change, and the client has to learn of it.
func (t *messageTurn) goOn(s *Server, req tracker.Request) {
	end, err := s.engine().TakeTurn(&req, true)
	if err != nil {
		return
	}
	t.mu.Lock()
	over := t.over
	if !over {
		t.end = end
	}
	t.mu.Unlock()
	if over { // the SDK was too late, and its answer is not used
		end()
	}
}
