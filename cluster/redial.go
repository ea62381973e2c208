package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// redialEvery is how often a member that can't be reached is sent what it lacks.
const redialEvery = 250 * time.Millisecond

// redial waits and reports whether a request should be sent again that did not reach its member, or
// whose answer was lost. Raft would send it with the next entry, and would wait ever longer after each
// failure, up to ten seconds. A member that returns after an outage would lack entries for as long. If
// another one died meanwhile, its shard could not commit without it, and there would be no next entry.
// Heartbeats, which Raft repeats soon enough, are not repeated here, and neither are requests that the
// member refused.
func (w *trackingTransport) redial(err error, id raft.ServerID, args *raft.AppendEntriesRequest) bool {
	if w.wanted == nil || !isLost(err) || len(args.Entries) == 0 && args.PrevLogEntry == 0 {
		return false
	}
	timer := time.NewTimer(redialEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return w.wanted(args.Term, id)
	case <-w.quit:
		return false
	}
}

// isLost reports whether the member of a request did not get it, or may not have.
func isLost(err error) bool {
	for _, lost := range []error{errNotSent, errGroupAbsent, errLinkEnded, errGroupTimeout} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// awaitRoom delays the return of a request with changes that its member has refused, until the member's node
// has room again. By then Raft would wait for up to ten seconds before it sends anything, and the shard may
// not be able to commit without this member. The delay ends as well when the request is not wanted any more,
// and where Raft's goroutine must be free for a hand-over.
func (w *trackingTransport) awaitRoom(err error, id raft.ServerID, args *raft.AppendEntriesRequest) {
	if w.hasRoom == nil || w.hasRoom(id) || !errors.Is(err, errGroupFails) && !errors.Is(err, errNoRoom) || !needsRoom(args) {
		return
	}
	args.Entries = nil // they take memory, and Raft reads them again
	again := time.NewTicker(redialEvery)
	defer again.Stop()
	for !w.handingOver.Load() && !w.silent.Load() && w.wanted != nil && w.wanted(args.Term, id) {
		if w.hasRoom(id) {
			if w.resume != nil {
				w.resume()
			}
			return
		}
		select {
		case <-again.C:
		case <-w.quit:
			return
		}
	}
}
