package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// Changes that a member has refused, and whose node says that it has no room, are sent again when there is
// room. Raft is not left to wait ever longer, and the changes are not sent in vain.
func TestAwaitRoom_HoldsRefusedChangesBack(t *testing.T) {
	t.Parallel()
	entry := func(kind byte, term, index uint64) []*raft.Log {
		return []*raft.Log{{Type: raft.LogCommand, Term: term, Index: index, Data: appendEntry(nil, kind, term, "row")}}
	}
	change := entry(entryBatch, 5, 11)
	const long = time.Hour
	for _, c := range []struct {
		name    string
		entries []*raft.Log
		with    error
		then    func(w *trackingTransport, leads, room *atomic.Bool) // after a long time
		held    bool
		resumed int
	}{
		{"until there is room", change, errGroupFails, func(_ *trackingTransport, _, room *atomic.Bool) { room.Store(true) }, true, 1},
		{"with the error of the member itself", change, errNoRoom, func(_ *trackingTransport, _, room *atomic.Bool) { room.Store(true) }, true, 1},
		{"until this member does not lead", change, errGroupFails, func(_ *trackingTransport, leads, _ *atomic.Bool) { leads.Store(false) }, true, 0},
		{"until the leadership is handed over", change, errGroupFails, func(w *trackingTransport, _, _ *atomic.Bool) { w.handingOver.Store(true) }, true, 0},
		{"until this member's disk is stuck", change, errGroupFails, func(w *trackingTransport, _, _ *atomic.Bool) { w.silent.Store(true) }, true, 0},
		{"until the transport is closed", change, errGroupFails, func(w *trackingTransport, _, _ *atomic.Bool) { _ = w.Close() }, true, 0},
		{"committed changes of an earlier term, too", entry(entryBatch, 4, 10), errGroupFails, func(_ *trackingTransport, _, room *atomic.Bool) { room.Store(true) }, true, 1},
		{"but not other changes of an earlier term", entry(entryBatch, 4, 11), errGroupFails, nil, false, 0},
		{"but not claims", entry(entryClaim, 5, 11), errGroupFails, nil, false, 0},
		{"but not heartbeats", nil, errGroupFails, nil, false, 0},
		{"but not after other errors", change, fmt.Errorf("closed"), nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := &unreachable{wire: &wire{arrivals: make(chan raft.RPC), closed: make(chan struct{})}, fails: 1, with: c.with}
				w := newTrackingTransport(u, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
				defer func() { _ = w.Close() }()
				var leads, room atomic.Bool
				leads.Store(true)
				resumed := 0
				w.wanted = func(uint64, raft.ServerID) bool { return leads.Load() }
				w.hasRoom = func(raft.ServerID) bool { return room.Load() }
				w.resume = func() { resumed++ }
				began := time.Now()
				if c.then != nil {
					time.AfterFunc(long, func() { c.then(w, &leads, &room) })
				}
				err := w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 5, LeaderCommitIndex: 10, Entries: c.entries}, &raft.AppendEntriesResponse{})
				took := time.Since(began)
				if err == nil || u.asked != 1 || resumed != c.resumed {
					t.Errorf("%v after %d requests, resumed %d times", err, u.asked, resumed)
				}
				if c.held && (took < long || took > long+redialEvery) || !c.held && took != 0 {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// With room there is nothing to wait for: the refusal came just before.
func TestAwaitRoom_ReturnsWithRoom(t *testing.T) {
	t.Parallel()
	w := &trackingTransport{hasRoom: func(raft.ServerID) bool { return true }}
	asks := &raft.AppendEntriesRequest{Term: 5, Entries: []*raft.Log{{Type: raft.LogCommand, Term: 5, Data: appendEntry(nil, entryBatch, 5, "row")}}}
	if w.awaitRoom(errGroupFails, "b", asks); len(asks.Entries) != 1 {
		t.Error("the request was held back")
	}
}
