package cluster

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// newTCP gives a transport of Raft's own over TCP.
func newTCP(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	trans, err := raft.NewTCPTransport("127.0.0.1:0", nil, raftPool, raftTimeout, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trans.Close() })
	return trans
}

// taker is a peer that votes for whoever asks and takes entries, or refuses some.
type taker struct {
	*raft.NetworkTransport
	refuse  atomic.Bool   // one request, when another is under way behind it
	refused chan struct{} // capacity 1
	again   chan struct{} // capacity 1: the first entries after a refusal were taken

	ahead *atomic.Uint64 // the newest entry on its way; nil: anything is
	last  uint64         // newest entry
	owed  bool           // it refused entries, and has taken none since
}

func newTaker(t *testing.T, ahead *atomic.Uint64) *taker {
	p := &taker{NetworkTransport: newTCP(t), ahead: ahead, refused: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case rpc := <-p.Consumer():
				rpc.Respond(p.answer(rpc.Command), nil)
			case <-quit:
				return
			}
		}
	}()
	t.Cleanup(func() { close(quit) })
	return p
}

func (p *taker) answer(command any) any {
	switch r := command.(type) {
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: r.Term, Granted: true}
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{Term: r.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		n := len(r.Entries)
		refuse := n > 0 && (p.ahead == nil || p.ahead.Load() > r.Entries[n-1].Index) && p.refuse.CompareAndSwap(true, false)
		if refuse {
			p.owed = true
			p.refused <- struct{}{}
		}
		if refuse || n > 0 && r.PrevLogEntry > p.last { // or it came after one that was refused
			return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last}
		}
		if n > 0 {
			p.last = max(p.last, r.Entries[n-1].Index)
			if p.owed {
				p.owed = false
				p.again <- struct{}{}
			}
		}
		return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last, Success: true}
	}
	return nil
}

// sender tells the newest entry that was put on its way ahead of answers.
type sender struct {
	*raft.NetworkTransport
	ahead atomic.Uint64
}

func (s *sender) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := s.NetworkTransport.AppendEntriesPipeline(id, target)
	return sending{p, s}, err
}

type sending struct {
	raft.AppendPipeline
	sender *sender
}

func (p sending) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if n := len(args.Entries); n > 0 {
		p.sender.ahead.Store(args.Entries[n-1].Index)
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// patience is how long these tests wait for what takes milliseconds: what fails
// them takes for ever.
const patience = 20 * time.Second

// Raft takes no answer after a refusal but may send once more, which waits for the
// answers before to be taken.
func TestPipeline_EndsWithARefusal(t *testing.T) {
	t.Parallel()
	peer := newTaker(t, nil)
	w := newWitness(newTCP(t), func() int64 { return 0 }, func() uint64 { return 0 }, nil)
	t.Cleanup(func() { _ = w.Close() })
	p, err := w.AppendEntriesPipeline("b", peer.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	send := func() error {
		_, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 5, Entries: []*raft.Log{{Index: 1, Term: 5}}}, &raft.AppendEntriesResponse{})
		return err
	}
	peer.refuse.Store(true)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if answer := <-p.Consumer(); answer.Error() != nil || answer.Response().Success {
		t.Fatalf("the answer is %+v, %v", answer.Response(), answer.Error())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for send() == nil { // as often as it likes
		}
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("a request after a refusal waits for ever")
	}
}

// A follower that refuses entries now and then, because its disk fails, say, gets
// them again; and a leader that was refused ends when it is told to.
func TestPipeline_RefusedEntriesComeAgain(t *testing.T) {
	t.Parallel()
	own := &sender{NetworkTransport: newTCP(t)}
	peer := newTaker(t, &own.ahead)
	w := newWitness(own, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
	conf := raft.DefaultConfig()
	conf.LocalID = "a"
	conf.LogOutput = io.Discard
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = heartbeatTimeout, heartbeatTimeout, heartbeatTimeout
	store, snapshots := raft.NewInmemStore(), raft.NewDiscardSnapshotStore()
	members := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: own.LocalAddr()}, {ID: "b", Address: peer.LocalAddr()}}}
	if err := raft.BootstrapCluster(conf, store, store, snapshots, w, members); err != nil {
		t.Fatal(err)
	}
	leader, err := raft.NewRaft(conf, &raft.MockFSM{}, store, store, snapshots, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also when the test fails because Raft does not end
		_ = w.Close()
		leader.Shutdown()
	})
	for leader.State() != raft.Leader {
		<-leader.LeaderCh()
	}
	// Entries have to come one close upon another for requests to overlap.
	quit, wrote := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(wrote)
		for {
			select {
			case <-quit:
				return
			default:
				_ = leader.Apply([]byte("entry"), time.Second) // its outcome shows at the peer
			}
		}
	}()
	for range 20 {
		peer.refuse.Store(true)
		for _, seen := range []chan struct{}{peer.refused, peer.again} {
			select {
			case <-seen:
			case <-time.After(patience):
				t.Fatal("the follower gets no entries any more")
			}
		}
	}
	close(quit)
	<-wrote
	ended := make(chan error, 1)
	go func() { ended <- leader.Shutdown().Error() }()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Raft does not end")
	}
}
