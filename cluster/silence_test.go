package cluster

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// A new owner need not wait once this member has heard nothing for a lease, unless its votes were
// asked for by a leadership transfer.
func TestSilence_LeftOfALease(t *testing.T) {
	t.Parallel()
	const lease = 500
	var s silence
	s.heard.Store(1000)
	want := func(term uint64, now, left int64) {
		t.Helper()
		if got := s.left(term, now, lease); got != left {
			t.Errorf("in term %d at %d: %d are left, want %d", term, now, got, left)
		}
	}
	want(7, 1000, lease)
	want(7, 1499, 1)
	want(7, 1500, 0)
	s.transferred(7)
	s.transferred(6) // a late request of an earlier term
	want(7, 9000, lease)
	want(8, 9000, 0)
	for i, request := range []any{&raft.AppendEntriesRequest{}, &raft.InstallSnapshotRequest{}, &raft.TimeoutNowRequest{}} {
		now := int64(10_000 * (i + 1))
		s.note(&raft.RPC{Command: request}, now)
		want(8, now+100, lease-100)
	}
	s.note(&raft.RPC{Command: &raft.AppendEntriesRequest{}}, 20_000) // its goroutine was held up
	want(8, 30_100, lease-100)
	s.note(&raft.RPC{Command: &raft.RequestVoteRequest{}}, 90_000)
	want(8, 90_000, 0)
}

// refusedEarly reports whether a candidate's request is refused before Raft sees it.
func refusedEarly(g *group, request any) bool {
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: request, RespChan: answer}
	if !g.refuseEarly(&rpc) {
		return false
	}
	switch r := (<-answer).Response.(type) {
	case *raft.RequestVoteResponse:
		return !r.Granted
	case *raft.RequestPreVoteResponse:
		return !r.Granted
	}
	return false
}

// silentFor calls look while a member has heard from no leader for d to most, and returns look's result. It does both
// again if a message came meanwhile, which was on its way, or if look took too long.
func silentFor(t *testing.T, g *group, d, most time.Duration, look func() bool) (result bool) {
	t.Helper()
	testkit.Eventually(t, g.node+" hears from no leader for a moment", func() bool {
		heard := g.tuning.clock() - int64(d)
		g.tracking.silence.heard.Store(heard)
		result = look()
		return g.tracking.silence.heard.Load() == heard && g.tracking.silence.since(g.tuning.clock()) < int64(most)
	})
	return result
}

// A member refuses votes within a lease of its leader's last message, and while it serves itself. It
// refuses no transfer, since the successor waits.
func TestVote_TooEarly(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	owner, follower := w.nodes["a"].group(1), w.nodes["b"].group(1)
	const never = time.Duration(math.MaxInt64)
	margin := time.Duration(follower.tuning.leaseMargin())
	want := func(g *group, silent, most time.Duration, refused bool) {
		t.Helper()
		term := g.raft.CurrentTerm() + 1
		if !silentFor(t, g, silent, most, func() bool {
			return refusedEarly(g, &raft.RequestVoteRequest{Term: term}) == refused && refusedEarly(g, &raft.RequestPreVoteRequest{Term: term}) == refused
		}) {
			t.Errorf("refused: %v, want %v", !refused, refused)
		}
		if refusedEarly(g, &raft.RequestVoteRequest{Term: term, LeadershipTransfer: true}) || refusedEarly(g, &raft.AppendEntriesRequest{Term: term}) {
			t.Error("a transfer's vote, or entries, are refused")
		}
	}
	want(owner, time.Hour, never, true)

	w.isolate(true, "a", "b", "c")
	want(follower, 0, margin, true)
	want(follower, margin, never, false)
	follower.lease.beginEpoch(9) // as before it serves, and after: the lease may be extended
	want(follower, margin, never, true)
	follower.lease.endEpoch()
	want(follower, margin, never, false)
	follower.up.Store(false) // as while it starts
	want(follower, margin, never, true)
	follower.up.Store(true)
}

// A replica that was created and not added to its group yet votes for nobody: it may be the
// successor of a voter, whose entries and votes it does not have.
func TestVote_EmptyReplica(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	w.boot(t, "d", vfs.NewMem(), false, 1)
	a, d := w.nodes["a"], w.nodes["d"]
	if err := d.hostReplica(1, logPoint{}); err != nil {
		t.Fatal(err)
	}
	g := d.group(1)
	g.tracking.silence.heard.Store(g.tuning.clock() - int64(time.Hour))
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte("b")}
	requests := []any{
		&raft.RequestPreVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000},
		&raft.RequestVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000},
		&raft.RequestVoteRequest{RPCHeader: header, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000, LeadershipTransfer: true},
	}
	for _, request := range requests {
		if !refusedEarly(g, request) {
			t.Errorf("an empty replica votes: %+v", request)
		}
	}
	g.up.Store(false) // as while it starts
	if !refusedEarly(g, requests[2]) {
		t.Error("an empty replica that starts votes")
	}
	g.up.Store(true)

	w.addVoter(t, a, 1, "d")
	w.isolate(true, "d", "a", "b", "c")
	for _, request := range requests {
		if silentFor(t, g, time.Hour, math.MaxInt64, func() bool { return refusedEarly(g, request) }) {
			t.Errorf("a voter does not vote: %+v", request)
		}
	}
}

// A member that hears nothing from its leader votes, although Raft still knows the leader.
func TestVote_SilentLeader(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	g := w.nodes["b"].group(1)
	follows := func() bool {
		leader, _ := g.raft.LeaderWithID()
		return leader == "a" && g.raft.State() == raft.Follower
	}
	// The member forgets its leader soon after the cut. On a very busy machine that may be before the end of a look.
	cut := func(silent, most time.Duration, look func() bool) (result bool) {
		t.Helper()
		testkit.Eventually(t, "the member knows a leader that it doesn't hear", func() bool {
			w.isolate(false, "b", "a", "c")
			testkit.Eventually(t, "the member follows", follows)
			w.isolate(true, "b", "a", "c") // the leader leads on with c
			result = silentFor(t, g, silent, most, look)
			return follows()
		})
		return result
	}
	if !cut(silentLeader, math.MaxInt64, func() bool {
		answer := make(chan raft.RPCResponse, 1)
		_, last := g.log.Bounds()
		ask := raft.RPC{RespChan: answer, Command: &raft.RequestPreVoteRequest{Term: g.raft.CurrentTerm() + 1, LastLogIndex: last + 1, LastLogTerm: g.raft.CurrentTerm() + 1,
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("c"), Addr: []byte("c")}}}
		return g.interceptVote(&ask) && (<-answer).Response.(*raft.RequestPreVoteResponse).Granted
	}) {
		t.Error("the member would not vote")
	}
	// flagged reports whether Raft is told not to ask whether it knows of a leader.
	flagged := func() bool {
		vote := raft.RPC{Command: &raft.RequestVoteRequest{Term: g.raft.CurrentTerm() + 1}}
		return !g.interceptVote(&vote) && vote.Command.(*raft.RequestVoteRequest).LeadershipTransfer
	}
	if !cut(silentLeader, math.MaxInt64, flagged) {
		t.Error("Raft would refuse the vote")
	}
	if cut(time.Duration(g.tuning.leaseMargin()), silentLeader, flagged) {
		t.Error("Raft is not asked whether it knows of a leader")
	}
}

// unreachable is a transport whose requests are not sent the first few times.
type unreachable struct {
	*wire
	fails, asked, beats int
	with                error
}

func (u *unreachable) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if isHeartbeat(args) || args.Term == 0 && args.PrevLogEntry == 0 && len(args.Entries) == 0 {
		u.beats++
	}
	if u.asked++; u.asked <= u.fails {
		return u.with
	}
	resp.Term, resp.Success = args.Term, true
	return nil
}

// Entries for a member that can't be reached are sent again at a steady pace, as long as this one
// leads. Raft would wait for the next entry, and ever longer.
func TestTrackingTransport_RepeatsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	notSent := fmt.Errorf("%w: nobody listens", errNotSent)
	for _, c := range []struct {
		name   string
		with   error
		leads  int // how many times the member is found to lead
		args   raft.AppendEntriesRequest
		asked  int // requests with or behind entries
		beats  int // heartbeats
		failed bool
	}{
		{"until the member is there", notSent, 100, raft.AppendEntriesRequest{PrevLogEntry: 5}, 21, 0, false},
		{"until the member runs again", errGroupAbsent, 100, raft.AppendEntriesRequest{PrevLogEntry: 5}, 2, 20, false},
		{"after a lost answer", fmt.Errorf("%w: cut off", errLinkEnded), 100, raft.AppendEntriesRequest{PrevLogEntry: 5}, 21, 0, false},
		{"after a late answer", errGroupTimeout, 100, raft.AppendEntriesRequest{PrevLogEntry: 5}, 21, 0, false},
		{"until this one doesn't lead any more", notSent, 3, raft.AppendEntriesRequest{Entries: []*raft.Log{{}}}, 4, 0, true},
		{"but not heartbeats", notSent, 100, raft.AppendEntriesRequest{}, 0, 1, true},
		{"but not what was refused", errGroupFails, 100, raft.AppendEntriesRequest{PrevLogEntry: 5}, 1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := &unreachable{wire: &wire{arrivals: make(chan raft.RPC), closed: make(chan struct{})}, fails: 20, with: c.with}
				w := newTrackingTransport(u, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
				defer func() { _ = w.Close() }()
				w.wanted = func(uint64, raft.ServerID) bool { c.leads--; return c.leads >= 0 }
				began := time.Now()
				err := w.AppendEntries("b", "b", &c.args, &raft.AppendEntriesResponse{})
				if u.asked-u.beats != c.asked || u.beats != c.beats || (err != nil) != c.failed {
					t.Errorf("%d requests and %d heartbeats, %v", u.asked-u.beats, u.beats, err)
				}
				if pauses := min(u.asked-1, u.fails); time.Since(began) != time.Duration(pauses)*redialEvery && c.leads >= 0 {
					took := time.Since(began)
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// The entry that makes Raft go on without a pipeline is applied like any other: a snapshot can't be
// ahead of the state.
func TestAppendEmpty_IsApplied(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "data", shards: 1, node: "a"})
	g := r.group(1)
	r.mustPropose(t, 1, "row")
	appended := func() bool {
		_, before := g.log.Bounds()
		g.appendEmpty()
		_, last := g.log.Bounds()
		testkit.Eventually(t, "the entry is applied", func() bool {
			_, last = g.log.Bounds()
			return g.machine.applied.Load() == last
		})
		return last > before
	}
	testkit.Eventually(t, "an owner appends an entry", appended)
	epoch := g.epoch.Swap(0) // as of a leader that has not claimed the shard yet
	testkit.Eventually(t, "a leader appends an entry", appended)
	g.epoch.Store(epoch)
	r.mustPropose(t, 1, "another row") // the epoch goes on
}
