package cluster

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Requests that Raft's own goroutine answers without doing anything. It takes none while it does
// something else, so a request that it takes shows where it is.

// newProbe returns a request of an old term.
func newProbe() raft.RPC {
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
	return raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: header}, RespChan: make(chan raft.RPCResponse, 1)}
}

// probe reports whether Raft's own goroutine takes a request at this moment.
func (w *trackingTransport) probe() bool {
	select {
	case w.requests <- newProbe():
		return true
	default:
		return false
	}
}

// errMembersBusy is returned for a change of the members that Raft's own goroutine is still busy with.
var errMembersBusy = errors.New("cluster: the leader does not count by its new members yet")

// awaitMembers waits until the leader counts answers by the members that a request brings, if it brings
// new ones.
//
// Raft has its followers sent a change of the members before it counts by the new members
// (appendConfigurationEntry in its raft.go). An answer that comes in between counts by the old ones. So
// a member that is removed could commit its own removal, and be told to give its replica up, while a
// remaining member still lacked entries that only the removed one and the leader had. Raft's goroutine
// does both steps without taking a request, so the change is sent once it has taken one.
//
// It returns an error if this member does not lead any more; Raft sends the entries again if it does.
func (w *trackingTransport) awaitMembers(id raft.ServerID, args *raft.AppendEntriesRequest) error {
	if !slices.ContainsFunc(args.Entries, func(l *raft.Log) bool { return l.Type == raft.LogConfiguration && l.Term == args.Term }) {
		return nil
	}
	again := time.NewTicker(redialEvery)
	defer again.Stop()
	for {
		select {
		case w.requests <- newProbe():
			return nil
		case <-again.C:
			if w.wanted == nil || !w.wanted(args.Term, id) {
				return errMembersBusy
			}
		case <-w.quit:
			return errMembersBusy
		}
	}
}
