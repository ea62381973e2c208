package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
)

// repeated is the request by which a leader sends its snapshot once more, and the channel of the answer.
func repeated(t *testing.T, leader *running) (raft.RPC, chan raft.RPCResponse) {
	t.Helper()
	row, err := leader.group(1).snapshots.Latest()
	if err != nil || row == nil {
		t.Fatalf("the leader's snapshot is %+v, %v", row, err)
	}
	stream, from, answer := exported(t, leader, 1), []byte(leader.Name()), make(chan raft.RPCResponse, 1)
	return raft.RPC{Reader: bytes.NewReader(stream), RespChan: answer, Command: &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: from, Addr: from},
		SnapshotVersion: row.Version, Term: leader.group(1).raft.CurrentTerm(), LastLogIndex: row.Index, LastLogTerm: row.Term,
		Size: int64(len(stream)), Configuration: raft.EncodeConfiguration(row.Configuration), ConfigurationIndex: row.ConfigurationIndex,
	}}, answer
}

// A goroutine of the leader's Raft that replicated to a member before its removal may send a snapshot when
// the member is a voter again. The voter keeps the entries behind the snapshot, which it has acknowledged.
func TestAnswerCovered_ASnapshotThatComesAgain(t *testing.T) {
	t.Parallel()
	for _, truncated := range []bool{false, true} { // the voter has a newer snapshot, and no entry that the repeated one covers
		for _, late := range []bool{false, true} { // the entries came after the request was looked at
			t.Run(fmt.Sprintf("truncated %t, late %t", truncated, late), func(t *testing.T) {
				t.Parallel()
				w := newNetwork()
				w.tune = func(t *tuning) { soonCommitted(t); t.trailing, t.keepPrevious = 2, false }
				w.growToThree(t, 1)
				defer w.mend()
				a, b := w.nodes["a"], w.nodes["b"]
				for i := range 20 {
					a.mustPropose(t, 1, fmt.Sprint("row ", i))
				}
				if err := a.group(1).snapshot(false); err != nil {
					t.Fatal(err)
				}
				for i := range 5 {
					a.mustPropose(t, 1, fmt.Sprint("later row ", i))
				}
				w.same(t, 1, "a", "b", "c")
				if truncated {
					if err := b.group(1).snapshot(true); err != nil {
						t.Fatal(err)
					}
				}
				w.isolate(true, "c", "a", "b")
				a.mustPropose(t, 1, "acknowledged")
				w.same(t, 1, "a", "b")
				w.isolate(true, "a", "b", "c")
				g := b.group(1)
				newest, err := g.snapshots.Latest()
				if err != nil {
					t.Fatal(err)
				}
				first, last := g.log.Bounds()

				rpc, answer := repeated(t, a)
				if late {
					g.tracking.take(rpc, true, nil)
					if r := <-answer; !errors.Is(r.Error, raftstore.ErrCovered) {
						t.Errorf("Raft answered %+v, %v", r.Response, r.Error)
					}
				} else {
					w.mu.Lock()
					to := w.at[1]["b"]
					w.mu.Unlock()
					to.arrivals <- rpc
					r := <-answer
					if got, ok := r.Response.(*raft.InstallSnapshotResponse); !ok || !got.Success || got.Term != g.raft.CurrentTerm() {
						t.Errorf("it was answered with %+v, %v", r.Response, r.Error)
					}
				}
				if from, to := g.log.Bounds(); from != first || to != last {
					t.Errorf("the log was %d to %d and is %d to %d", first, last, from, to)
				}
				if now, err := g.snapshots.Latest(); err != nil || !reflect.DeepEqual(now, newest) {
					t.Errorf("the snapshot was %+v and is %+v, %v", newest, now, err)
				}
				w.isolate(false, "b", "c")
				if owner := w.owner(t, 1, "b", "c"); !owner.has(t, 1, "acknowledged") {
					t.Errorf("%s serves without what was acknowledged", owner.id.Node)
				}
			})
		}
	}
}
