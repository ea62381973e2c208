package cluster

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// A leader sends entries again whose answers were lost. Meanwhile the follower has made a snapshot and
// truncated its log, so that it has the entry before them no more.
func TestSkipCovered_EntriesThatComeAgain(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	w.tune = func(t *tuning) { soonCommitted(t); t.trailing, t.keepPrevious = 0, false }
	w.growToThree(t, 1)
	a, b := w.nodes["a"].group(1), w.nodes["b"].group(1)
	for i := range 20 {
		w.nodes["a"].mustPropose(t, 1, fmt.Sprint("row ", i))
	}
	_, last := a.log.Bounds()
	testkit.Eventually(t, "the follower has all entries", func() bool { return b.machine.applied.Load() >= last })
	if err := b.snapshot(true); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		w.nodes["a"].mustPropose(t, 1, fmt.Sprint("later row ", i))
	}
	_, last = a.log.Bounds()
	testkit.Eventually(t, "the follower has the later entries", func() bool { return b.machine.applied.Load() >= last })
	newest, err := b.snapshots.Latest()
	if first, _ := b.log.Bounds(); err != nil || newest == nil || first != newest.Index+1 {
		t.Fatalf("the follower's log begins at %d, its snapshot is %+v, %v", first, newest, err)
	}
	read := func(index uint64) *raft.Log {
		entry := new(raft.Log)
		if err := a.log.GetLog(index, entry); err != nil {
			t.Fatal(err)
		}
		return entry
	}
	ask := func(after uint64, n int) *raft.AppendEntriesRequest {
		asks := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")},
			Term:      a.raft.CurrentTerm(), PrevLogEntry: after, LeaderCommitIndex: a.raft.CommitIndex(),
		}
		if after > 0 {
			asks.PrevLogTerm = read(after).Term
		}
		for i := range n {
			asks.Entries = append(asks.Entries, read(after+uint64(i)+1))
		}
		return asks
	}
	for _, asks := range []*raft.AppendEntriesRequest{
		ask(0, 5), ask(1, 3), ask(1, 0), ask(newest.Index-3, 3), ask(newest.Index-3, 2),
		ask(newest.Index-5, int(last-newest.Index+5)), ask(newest.Index, int(last-newest.Index)),
	} {
		from, n := asks.PrevLogEntry, len(asks.Entries)
		var answer raft.AppendEntriesResponse
		if err := a.tracking.AppendEntries("b", "b", asks, &answer); err != nil || !answer.Success {
			t.Errorf("%d entries after %d, the snapshot ends at %d: %+v, %v", n, from, newest.Index, answer, err)
		}
		if asks.PrevLogEntry != from || len(asks.Entries) != n {
			t.Error("the sender's request was changed")
		}
	}
	// An entry that differs from the committed one is still refused.
	wrong := ask(newest.Index, 0)
	wrong.PrevLogTerm++
	var answer raft.AppendEntriesResponse
	if err := a.tracking.AppendEntries("b", "b", wrong, &answer); err != nil || answer.Success {
		t.Errorf("another entry in the place of the snapshot's last: %+v, %v", answer, err)
	}
	w.nodes["a"].mustPropose(t, 1, "row behind it")
	_, last = a.log.Bounds()
	testkit.Eventually(t, "the follower goes on", func() bool { return b.machine.applied.Load() >= last })
}
