package cluster

import (
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
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

// refusingFollower is a peer that votes for every candidate, accepts entries, and refuses some.
type refusingFollower struct {
	*raft.NetworkTransport
	behind  func(last uint64) bool // waits for another request behind that one; false: there can be none
	refused chan struct{}          // capacity 1
	again   chan struct{}          // capacity 1: the first entries after a refusal were taken

	mu     sync.Mutex
	refuse bool   // the next request with entries that has one behind it
	last   uint64 // newest entry
	owed   bool   // it refused entries, and has taken none since
}

func newRefusingFollower(t *testing.T, behind func(last uint64) bool) *refusingFollower {
	p := &refusingFollower{NetworkTransport: newTCP(t), behind: behind, refused: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case rpc := <-p.Consumer():
				go func() { rpc.Respond(p.answer(rpc.Command), nil) }() // heartbeats overtake waiting requests
			case <-quit:
				return
			}
		}
	}()
	t.Cleanup(func() { close(quit) })
	return p
}

func (p *refusingFollower) refuseOne() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
}

func (p *refusingFollower) answer(command any) any {
	switch r := command.(type) {
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: r.Term, Granted: true}
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{Term: r.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		return p.append(r)
	}
	return nil
}

func (p *refusingFollower) append(r *raft.AppendEntriesRequest) *raft.AppendEntriesResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(r.Entries)
	if n == 0 {
		return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last, Success: true}
	}
	if p.refuse {
		p.mu.Unlock()
		ok := p.behind(r.Entries[n-1].Index)
		p.mu.Lock()
		if ok && p.refuse {
			p.refuse, p.owed = false, true
			p.refused <- struct{}{}
			return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last}
		}
	}
	if r.PrevLogEntry > p.last { // it came behind one that was refused
		return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last}
	}
	p.last = max(p.last, r.Entries[n-1].Index)
	if p.owed {
		p.owed = false
		p.again <- struct{}{}
	}
	return &raft.AppendEntriesResponse{Term: r.Term, LastLog: p.last, Success: true}
}

// countingTransport knows which requests were sent ahead of answers.
type countingTransport struct {
	*raft.NetworkTransport

	mu    sync.Mutex
	moved sync.Cond
	ahead uint64 // newest entry sent so; 0 while each request waits for its answer
}

func newCountingTransport(t *testing.T) *countingTransport {
	s := &countingTransport{NetworkTransport: newTCP(t)}
	s.moved.L = &s.mu
	return s
}

func (s *countingTransport) sent(ahead uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = ahead
	s.moved.Broadcast()
}

// behind waits for the next request. Entries keep coming, so one follows soon.
func (s *countingTransport) behind(last uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ahead == last {
		s.moved.Wait()
	}
	return s.ahead > last
}

func (s *countingTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if args.PrevLogEntry > 0 || len(args.Entries) > 0 { // else it is a heartbeat
		s.sent(0)
	}
	return s.NetworkTransport.AppendEntries(id, target, args, resp)
}

func (s *countingTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := s.NetworkTransport.AppendEntriesPipeline(id, target)
	return sending{p, s}, err
}

type sending struct {
	raft.AppendPipeline
	sender *countingTransport
}

func (p sending) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if n := len(args.Entries); n > 0 {
		p.sender.sent(args.Entries[n-1].Index)
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// deadline bounds waits for conditions that take milliseconds. A fault makes them wait forever.
const deadline = 2 * time.Minute

// After a refusal Raft takes no further answer, but it may send one more request. That one
// waits until the earlier answers are taken.
func TestPipeline_EndsWithARefusal(t *testing.T) {
	t.Parallel()
	peer := newRefusingFollower(t, func(uint64) bool { return true })
	w := newTrackingTransport(newTCP(t), func() int64 { return 0 }, func() uint64 { return 0 }, nil)
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
	peer.refuseOne()
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
	case <-time.After(deadline):
		t.Fatal("a request after a refusal waits for ever")
	}
}

// A follower that refuses some entries, for example because its disk fails, gets them
// again. A leader whose entries were refused can still be stopped.
func TestPipeline_RefusedEntriesComeAgain(t *testing.T) {
	t.Parallel()
	own := newCountingTransport(t)
	peer := newRefusingFollower(t, own.behind)
	w := newTrackingTransport(own, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
	conf := raft.DefaultConfig()
	conf.LocalID = "a"
	conf.LogOutput = io.Discard
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = electionTimeout, electionTimeout, electionTimeout
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
	// Entries have to come one close upon another for requests to overlap: more are
	// under way than a request takes.
	quit, wrote := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(wrote)
		pending := make([]raft.ApplyFuture, 1000)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			slot := &pending[i%len(pending)]
			if *slot != nil {
				_ = (*slot).Error() // the peer sees the outcome
			}
			*slot = leader.Apply([]byte("entry"), 0)
		}
	}()
	for range 20 {
		peer.refuseOne()
		for _, seen := range []chan struct{}{peer.refused, peer.again} {
			select {
			case <-seen:
			case <-time.After(deadline):
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
	case <-time.After(deadline):
		t.Fatal("Raft does not end")
	}
}

// fakePipeline answers a request when a test says so.
type fakePipeline struct {
	answers chan raft.AppendFuture
	closed  bool
}

func (f *fakePipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	return nil, nil
}
func (f *fakePipeline) Consumer() <-chan raft.AppendFuture { return f.answers }
func (f *fakePipeline) Close() error                       { f.closed = true; return nil }

// tookEntries is the answer of a follower that took a request.
type tookEntries struct{ request raft.AppendEntriesRequest }

func (tookEntries) Error() error                          { return nil }
func (tookEntries) Start() time.Time                      { return time.Time{} }
func (a tookEntries) Request() *raft.AppendEntriesRequest { return &a.request }
func (a tookEntries) Response() *raft.AppendEntriesResponse {
	return &raft.AppendEntriesResponse{Term: a.request.Term, Success: true}
}

// A follower that lacks fewer entries than a request carries gets them although no other entry
// comes: the shard may wait for this very follower.
func TestPipeline_BringsTheLastEntries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		last     uint64
		underWay bool // a later request has no answer yet
		resumed  int  // pauses that end with a new entry, of three
		closed   bool
	}{
		{"a follower that has all", 20, false, 0, false},
		{"one that lacks the last entry", 21, false, 3, false},
		{"one that lacks what a request carries", 20 + maxAppendEntries, false, 3, false},
		{"one that lacks more", 20 + pipelineLag, false, 0, true},
		{"one that is being sent more", 21, true, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakePipeline{answers: make(chan raft.AppendFuture)}
				resumed := 0
				p := newPipeline(f, func() uint64 { return c.last }, func() { resumed++ })
				for range 2 {
					_, _ = p.AppendEntries(&raft.AppendEntriesRequest{}, nil)
				}
				if !c.underWay {
					p.inFlight.Add(-1)
				}
				f.answers <- tookEntries{raft.AppendEntriesRequest{Term: 5, PrevLogEntry: 18, Entries: []*raft.Log{{}, {}}}}
				<-p.Consumer()
				if c.closed {
					<-p.Consumer() // makes Raft leave
				}
				time.Sleep(3*pipelinePause + pipelinePause/2)
				synctest.Wait()
				if resumed != c.resumed || f.closed != c.closed {
					t.Errorf("resumed %d times, closed %v", resumed, f.closed)
				}
				if _ = p.Close(); resumed != c.resumed+1 {
					t.Error("Raft is not told to go on without the pipeline")
				}
			})
		})
	}
}
