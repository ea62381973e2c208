package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// refusedChange takes the room from all nodes but the owner of shard 1, and has the owner propose a row. It
// returns when the row is in the owner's log, which no follower takes. The channel has the outcome.
func (w *network) refusedChange(t *testing.T, owner *running, row string) <-chan error {
	t.Helper()
	for _, r := range w.nodes {
		r.spent.Store(r != owner)
	}
	epoch, ok := owner.Owner(1)
	if !ok {
		t.Fatal("shard 1 is not owned")
	}
	_, last := owner.group(1).log.Bounds()
	outcome := make(chan error, 1)
	owner.Propose(1, epoch, write(t, owner.store, 1, row), func(err error) { outcome <- err })
	testkit.Eventually(t, row+" is in the owner's log", func() bool {
		_, now := owner.group(1).log.Bounds()
		return now > last
	})
	return outcome
}

// ownerAfter waits until a node owns shard 1 in an epoch after another one, and reads there.
func (w *network) ownerAfter(t *testing.T, epoch uint64) *running {
	t.Helper()
	var owner *running
	testkit.Eventually(t, "the shard has an owner again", func() bool {
		for _, r := range w.nodes {
			if now, ok := r.Owner(1); ok && now > epoch {
				owner = r
			}
		}
		return owner != nil
	})
	if err := owner.ReadBarrier(1, time.Now().Add(10*time.Second)); err != nil {
		t.Error(err)
	}
	return owner
}

// settled gives all nodes room, and checks that the shard goes on and that the row of a refused change is
// there if the change was acknowledged. A change that was in a log is never answered as one that was not
// applied.
func (w *network) settled(t *testing.T, outcome <-chan error, row string) {
	t.Helper()
	for _, r := range w.nodes {
		r.spent.Store(false)
	}
	owner := w.keep(t, 1, "after", "a", "b", "c")
	w.same(t, 1, "a", "b", "c")
	err := <-outcome
	var told *Error
	if errors.As(err, &told) && told.NotApplied() {
		t.Errorf("a change that was in a log is answered as not applied: %v", err)
	}
	if err == nil && !owner.has(t, 1, row) {
		t.Error("an acknowledged change is gone")
	}
}

// A change that no follower has room for keeps nobody from taking the shard over: it is answered by reads
// again after a hand-over, whether or not this succeeded.
func TestNoRoom_AHandOverBehindARefusedChange(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]bool{"to a voter": false, "of a node that stops": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := threeNodes(t, 1)
			a := w.owner(t, 1, "a")
			a.mustPropose(t, 1, "before")
			w.same(t, 1, "a", "b", "c")
			epoch, _ := a.Owner(1)
			outcome := w.refusedChange(t, a, "refused")
			if err := a.group(1).handOver(t.Context(), "", release); err != nil {
				t.Logf("the shard was not handed over: %v", err)
			}
			w.ownerAfter(t, epoch)
			w.settled(t, outcome, "refused")
		})
	}
}

// Nor does such a change keep the winner of an election from owning the shard.
func TestNoRoom_AnElectionBehindARefusedChange(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	epoch, _ := a.Owner(1)
	outcome := w.refusedChange(t, a, "refused")
	a.group(1).tracking.triggerElection()
	w.ownerAfter(t, epoch)
	w.settled(t, outcome, "refused")
}

// Nor does it when the owner is started again at once: its node stops in spite of the change, too.
func TestNoRoom_ARestartBehindARefusedChange(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	epoch, _ := a.Owner(1)
	outcome := w.refusedChange(t, a, "refused")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Errorf("the node did not stop: %v", err)
	}
	a.stop()
	w.boot(t, "a", disks["a"], true, 1)
	w.ownerAfter(t, epoch)
	w.settled(t, outcome, "refused")
}

// Of the changes that a node without room is sent it takes those that an elected leader had in its log
// already and that are not committed, as long as there is spare room.
func TestNoRoom_ChangesOfEarlierTerms(t *testing.T) {
	t.Parallel()
	const spare = 1000
	w, _ := threeNodes(t, 1)
	w.owner(t, 1, "a")
	b := w.nodes["b"]
	g := b.group(1)
	change := func(term, index uint64, bytes int) *raft.Log {
		return &raft.Log{Type: raft.LogCommand, Term: term, Index: index, Data: appendEntry(nil, entryBatch, term, string(make([]byte, bytes-entryHeader)))}
	}
	claim := &raft.Log{Type: raft.LogCommand, Term: 9, Index: 102, Data: appendEntry(nil, entryClaim, 9, "a")}
	refused := func(entries ...*raft.Log) bool {
		answer := make(chan raft.RPCResponse, 1)
		rpc := raft.RPC{Command: &raft.AppendEntriesRequest{Term: 9, LeaderCommitIndex: 100, Entries: entries}, RespChan: answer}
		return g.refuseChanges(&rpc)
	}
	want := func(what string, refuses, got bool) {
		t.Helper()
		if got != refuses {
			t.Errorf("%s: refused is %t, want %t", what, got, refuses)
		}
	}
	want("a change of the term with room", false, refused(change(9, 101, 9*spare)))
	b.spare.Store(spare)
	b.spent.Store(true)
	want("a change of the term", true, refused(change(9, 101, 100)))
	want("a claim", false, refused(claim))
	want("a change of an earlier term that is committed", true, refused(change(8, 100, 100)))
	want("one of an earlier term beside one of the term", true, refused(change(8, 101, 100), change(9, 102, 100)))
	want("a change of an earlier term", false, refused(change(8, 101, spare*2/5), claim)) // in the log and in the state
	want("one that takes all that is left", false, refused(change(8, 101, spare/10)))
	want("one too many", true, refused(change(8, 101, 10)))
	b.spent.Store(false)
	want("with room again", false, refused(change(9, 101, 10)))
	b.spent.Store(true)
	want("a change of an earlier term, later", false, refused(change(8, 101, spare/2)))

	packed, ok := pack(nil, change(8, 101, 1<<20).Data)
	if !ok {
		t.Fatal("zeros are not packed")
	}
	want("rows that are small only as they are sent", true, refused(&raft.Log{Type: raft.LogCommand, Term: 8, Index: 101, Data: packed}))
}

// Changes that a node without room has in its log take none when they come again, alone or before others,
// also when its spare room has become less than what they took.
func TestNoRoom_ChangesThatComeAgain(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	defer w.mend()
	w.owner(t, 1, "a").mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	w.isolate(true, "b", "a", "c")
	b := w.nodes["b"]
	log := b.group(1).log
	var known []*raft.Log // the change that is committed, and what is behind it
	_, last := log.Bounds()
	for at := last; len(known) == 0 || !changesRows(known[0]); at-- {
		l := new(raft.Log)
		if err := log.GetLog(at, l); err != nil {
			t.Fatal(err)
		}
		known = slices.Insert(known, 0, l)
	}
	term := known[len(known)-1].Term
	change := func(index, term uint64) *raft.Log {
		return &raft.Log{Type: raft.LogCommand, Term: term, Index: index, Data: appendEntry(nil, entryBatch, term, string(write(t, b.store, 1, "row")))}
	}
	one, two, three := change(last+1, term), change(last+2, term), change(last+3, term)
	send := func(asks uint64, entries ...*raft.Log) error { // as the leader of a term
		before := new(raft.Log)
		if err := log.GetLog(entries[0].Index-1, before); err != nil {
			t.Fatal(err)
		}
		answer := make(chan raft.RPCResponse, 1)
		w.at[1]["b"].arrivals <- raft.RPC{RespChan: answer, Command: &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")},
			Term:      asks, PrevLogEntry: before.Index, PrevLogTerm: before.Term, Entries: entries, LeaderCommitIndex: last,
		}}
		r := <-answer
		if took, ok := r.Response.(*raft.AppendEntriesResponse); r.Error == nil && (!ok || !took.Success) {
			return fmt.Errorf("answered %+v", r.Response)
		}
		return r.Error
	}
	b.spare.Store(diskBytes(one) + diskBytes(two))
	b.spent.Store(true)
	claim := &raft.Log{Type: raft.LogCommand, Term: term + 1, Index: last + 3, Data: appendEntry(nil, entryClaim, term+1, "a")}
	type step struct {
		asks    uint64
		entries []*raft.Log
		refused bool
		last    uint64 // of the log
	}
	steps := []step{
		{term + 1, known, false, last},
		{term + 1, append(slices.Clone(known), one), false, one.Index},
		{term + 1, []*raft.Log{one}, false, one.Index},
		{term + 1, []*raft.Log{one}, false, one.Index},
		{term + 1, append(slices.Clone(known), one, two), false, two.Index},
		{term + 1, []*raft.Log{one, two}, false, two.Index},
		{term + 1, []*raft.Log{one, two, three}, true, two.Index},
		{term + 2, []*raft.Log{change(one.Index, term+1)}, true, two.Index}, // another one in the place of the first
		{term + 1, []*raft.Log{one, two}, false, two.Index},
		{term + 1, []*raft.Log{one, two, claim}, false, claim.Index},
	}
	for i, step := range steps {
		if i == len(steps)-2 {
			b.spare.Store(diskBytes(one) / 2)
		}
		err := send(step.asks, step.entries...)
		if _, now := log.Bounds(); step.refused != errors.Is(err, errNoRoom) || !step.refused && err != nil || now != step.last {
			t.Errorf("step %d: %v, the log ends with %d, want %d", i, err, now, step.last)
		}
	}
}

// While most voters say that they have no room, changes are refused before they are in the log. They are
// taken again when one of them has room.
func TestNoRoom_ChangesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	seq := uint64(0)
	says := func(node string, noRoom bool) {
		seq++
		a.owners.Load().update(node, &heartbeatMessage{Seq: seq, NoRoom: noRoom})
	}
	says("b", true)
	a.mustPropose(t, 1, "by a and c")
	says("c", true)
	if s := a.ShardStats(1); !s.NoRoom {
		t.Errorf("%+v", s)
	}
	epoch, _ := a.Owner(1)
	if err := a.propose(1, epoch, write(t, a.store, 1, "refused")); !errors.Is(err, errVotersFull) {
		t.Errorf("refused with %v", err)
	}
	if err := a.ReadBarrier(1, time.Now().Add(10*time.Second)); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, "both followers are successors", func() bool { return len(a.group(1).successors("")) == 2 })
	says("c", false)
	if got := a.group(1).successors(""); len(got) != 2 || got[0] != "c" {
		t.Errorf("successors %q, where c has room", got)
	}
	a.mustPropose(t, 1, "after")
	says("c", true)
	a.owners.Load().removeNode("c")
	a.mustPropose(t, 1, "after a node was removed")
	w.same(t, 1, "a", "b", "c")
	if s := a.ShardStats(1); s.NoRoom || a.has(t, 1, "refused") {
		t.Errorf("%+v", s)
	}
}

// Where one of three voters is dead and another one has no room, changes are refused before they are in the
// log. So nothing that the voter without room refuses stands before the entries that replace the dead one.
func TestNoRoom_OneDeadAndOneFull(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	defer w.mend()
	w.boot(t, "d", vfs.NewMem(), false, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	w.isolate(true, "c", "a", "b", "d")
	a.owners.Load().setReachable("c", false)
	w.nodes["b"].spent.Store(true)
	a.owners.Load().update("b", &heartbeatMessage{Seq: 1, NoRoom: true})
	testkit.Eventually(t, "the owner has no majority with room", func() bool { return a.ShardStats(1).NoRoom })
	epoch, _ := a.Owner(1)
	if err := a.propose(1, epoch, write(t, a.store, 1, "refused")); !errors.Is(err, errVotersFull) {
		t.Errorf("refused with %v", err)
	}
	w.addVoter(t, a, 1, "d")
	w.removeVoter(t, a, 1, "c")
	a.mustPropose(t, 1, "with d")
	w.same(t, 1, "a", "d")
}

// A voter that has not answered yet in a new term, or that is slow, is not taken for one that is away, if its
// node answers.
func TestNoRoom_SlowVotersCount(t *testing.T) {
	t.Parallel()
	now := int64(1)
	h, w := newBlockingTransport(t, &now)
	answered := func(term uint64, entries ...*raft.Log) {
		t.Helper()
		go func() { <-h.asked; h.answer <- raft.AppendEntriesResponse{Term: term, Success: true} }()
		if err := w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: term, Entries: entries}, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, node, noNode bool) {
		t.Helper()
		if got := w.isFollowed(5, "b", true); got != node {
			t.Errorf("%s: follows is %t where its node answers", what, got)
		}
		if got := w.isFollowed(5, "b", false); got != noNode {
			t.Errorf("%s: follows is %t where its node does not answer", what, got)
		}
	}
	want("no answer in the term", true, false)
	answered(5)
	want("an answer to a heartbeat", true, false)
	now += int64(slowVoter) + 1
	want("no answer to entries", false, false)
	answered(5, &raft.Log{Index: 10})
	want("an answer to entries", true, true)
	now += int64(electionTimeout) + 1
	want("slow", true, false)
	now += int64(slowVoter)
	want("silent", false, false)
}

// Heartbeats say whether there is room. Those of versions before say nothing about it.
func TestNoRoom_HeartbeatsSaySo(t *testing.T) {
	t.Parallel()
	m, noRoom := newShardMap("self", 1), true
	p := newHeartbeat(heartbeatConfig{
		Owned: m.ownedShards, Map: func() *shardMap { return m }, Clock: time.Now,
		NoRoom: func() bool { return noRoom },
	})
	for _, step := range []struct {
		message string
		noRoom  bool // as the other node has it, and as this one has it
	}{{`{"seq":1,"noRoom":true}`, true}, {`{"seq":2}`, false}} {
		noRoom = step.noRoom
		answer, err := p.answer(t.Context(), "b", []byte(step.message))
		if err != nil || bytes.Contains(answer, []byte(`"noRoom":true`)) != noRoom {
			t.Errorf("%s: answered %s, %v", step.message, answer, err)
		}
		if m.hasRoom("b") == noRoom || m.anyWithoutRoom() != noRoom {
			t.Errorf("%s: room %t", step.message, m.hasRoom("b"))
		}
	}
}

// A release does not wait for changes that are not committed.
func TestCommitter_DrainsForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(*tuning) {})
		defer ct.c.stop()
		ct.c.beginEpoch(3)
		ct.propose(3, "waits")
		synctest.Wait()
		ct.c.endEpoch()
		if began := time.Now(); ct.c.drain(time.Second) || time.Since(began) != time.Second {
			t.Errorf("drained after %s", time.Since(began))
		}
		ct.held.futures[0].answer <- nil
		for range 2 {
			if !ct.c.drain(time.Second) {
				t.Error("not drained")
			}
		}
	})
}
