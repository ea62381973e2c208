package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// linkedGroups are the groups of a follower that answers with its shard's number in place of the
// newest entry.
type linkedGroups struct {
	t    *testing.T
	port *peerPort
}

// takes is a member that takes each request, or does what a test says in its place.
type takes func(rpc raft.RPC, wait bool, quit <-chan struct{}) bool

func (takes) arrive(*raft.RPC) bool { return false }

func (m takes) take(rpc raft.RPC, wait bool, quit <-chan struct{}) bool { return m(rpc, wait, quit) }

func (g linkedGroups) add(shard storage.Shard, take takes) *shardTransport {
	g.t.Helper()
	own := g.port.transportFor(shard).(*shardTransport)
	g.t.Cleanup(func() { _ = own.Close() })
	if take == nil {
		take = func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool {
			asks := rpc.Command.(*raft.AppendEntriesRequest)
			rpc.Respond(&raft.AppendEntriesResponse{Term: asks.Term, LastLog: uint64(shard), Success: string(asks.ID) == "a"}, nil)
			return true
		}
	}
	own.setMember(take)
	return own
}

// answerStreams adds a group whose streams are answered with 99 as the newest entry.
func (g linkedGroups) answerStreams(shard storage.Shard) {
	to := g.add(shard, nil)
	go func() {
		for {
			select {
			case rpc := <-to.Consumer():
				rpc.Respond(&raft.AppendEntriesResponse{Success: true, LastLog: 99}, nil)
			case <-to.ctx.Done():
				return
			}
		}
	}()
}

func (p *peerPort) openConns(kind byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, whose := range p.conns {
		if whose.kind == kind {
			count++
		}
	}
	return count
}

func beat(from *shardTransport, term uint64) (raft.AppendEntriesResponse, error) {
	var resp raft.AppendEntriesResponse
	err := from.AppendEntries("b", "b", groupMessage{term: term}.request("a").(*raft.AppendEntriesRequest), &resp)
	return resp, err
}

// The heartbeats of all groups to one node share a connection, and each gets the answer of its group.
func TestGroupLink_ShareAConnection(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	var all sync.WaitGroup
	for shard := storage.Shard(1); shard <= 40; shard++ {
		follower.add(shard, nil)
		from := leader.add(shard, nil)
		all.Go(func() {
			for term := range uint64(3) {
				resp, err := beat(from, term+7)
				if err != nil || !resp.Success || resp.Term != term+7 || resp.LastLog != uint64(shard) {
					t.Errorf("shard %d: %+v, %v", shard, resp, err)
				}
			}
		})
	}
	all.Wait()
	for kind, want := range map[byte]int{kindGroups: 1, kindRaft: 0} {
		if got := follower.port.openConns(kind); got != want {
			t.Errorf("%d connections of kind %q, not %d", got, kind, want)
		}
	}
	if _, err := beat(leader.add(41, nil), 1); !errors.Is(err, errGroupAbsent) {
		t.Errorf("a shard that is not there: %v", err)
	}
	follower.add(42, func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool {
		rpc.Respond(nil, io.ErrUnexpectedEOF)
		return true
	})
	if _, err := beat(leader.add(42, nil), 1); !errors.Is(err, errGroupFails) {
		t.Errorf("a group that fails: %v", err)
	}
}

// A group whose member is busy, or answers late, delays no other group's answer, and is handed no more
// than maxLate heartbeats meanwhile.
func TestGroupLink_LateGroup(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	free, taken, arrived := make(chan struct{}), make(chan raft.RPC, 10), make(chan struct{}, 2*maxLate+10)
	follower.add(1, func(rpc raft.RPC, wait bool, quit <-chan struct{}) bool { // Raft's goroutine takes nothing
		if !wait {
			arrived <- struct{}{}
			return false
		}
		select {
		case <-free:
			taken <- rpc
			rpc.Respond(&raft.AppendEntriesResponse{Success: true, LastLog: 1}, nil)
			return true
		case <-quit:
			return false
		}
	})
	follower.add(2, func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool { // it takes the heartbeat and waits for the disk
		arrived <- struct{}{}
		go func() {
			<-free
			rpc.Respond(&raft.AppendEntriesResponse{Success: true, LastLog: 2}, nil)
		}()
		return true
	})
	follower.add(3, nil)
	var late sync.WaitGroup
	for shard := range storage.Shard(2) {
		from := leader.add(shard+1, nil)
		late.Go(func() {
			if resp, err := beat(from, 1); err != nil || resp.LastLog != uint64(from.shard) {
				t.Errorf("shard %d: %+v, %v", from.shard, resp, err)
			}
		})
	}
	for range 2 {
		<-arrived
	}
	third := leader.add(3, nil)
	for range 3 {
		if _, err := beat(third, 1); err != nil {
			t.Fatal(err)
		}
	}
	// More of them for the busy group, as after the leader's time was up: not all are handed on.
	link, err := leader.port.groupLink("b")
	if err != nil {
		t.Fatal(err)
	}
	for range maxLate + 3 {
		if _, _, err := link.enqueue(groupMessage{shard: 1, term: 1}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := beat(third, 1); err != nil { // the same frame, or a later one
		t.Fatal(err)
	}
	close(free)
	late.Wait()
	for range maxLate {
		<-taken
	}
	if _, err := beat(third, 1); err != nil || len(taken) != 0 {
		t.Errorf("the busy group got %d heartbeats more; %v", len(taken), err)
	}
}

// Votes and the request to stand for election arrive with all that they said, and so do the answers.
func TestGroupLink_Votes(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	var got any
	var granted bool
	follower.add(1, func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool {
		got = rpc.Command
		switch rpc.Command.(type) {
		case *raft.RequestPreVoteRequest:
			rpc.Respond(&raft.RequestPreVoteResponse{Term: 5, Granted: granted}, nil)
		case *raft.RequestVoteRequest:
			rpc.Respond(&raft.RequestVoteResponse{Term: 6, Granted: granted}, nil)
		case *raft.TimeoutNowRequest:
			rpc.Respond(&raft.TimeoutNowResponse{}, nil)
		}
		return true
	})
	from := leader.add(1, nil)
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")}
	for _, granted = range []bool{true, false} {
		pre, preAnswer := &raft.RequestPreVoteRequest{RPCHeader: header, Term: 5, LastLogIndex: 8, LastLogTerm: 3}, raft.RequestPreVoteResponse{}
		if err := from.RequestPreVote("b", "b", pre, &preAnswer); err != nil || !reflect.DeepEqual(got, pre) || preAnswer.Term != 5 || preAnswer.Granted != granted {
			t.Errorf("%+v: %+v, %v", got, preAnswer, err)
		}
		for _, transfer := range []bool{true, false} {
			vote := &raft.RequestVoteRequest{RPCHeader: header, Term: 6, LastLogIndex: 9, LastLogTerm: 4, LeadershipTransfer: transfer}
			var answer raft.RequestVoteResponse
			if err := from.RequestVote("b", "b", vote, &answer); err != nil || !reflect.DeepEqual(got, vote) || answer.Term != 6 || answer.Granted != granted {
				t.Errorf("%+v: %+v, %v", got, answer, err)
			}
		}
	}
	stand := &raft.TimeoutNowRequest{RPCHeader: header}
	if err := from.TimeoutNow("b", "b", stand, &raft.TimeoutNowResponse{}); err != nil || !reflect.DeepEqual(got, stand) {
		t.Errorf("%+v, %v", got, err)
	}
	if got := follower.port.openConns(kindRaft); got != 0 {
		t.Errorf("%d streams", got)
	}
}

// A member whose Raft hangs holds up the leader that tells it to stand for election for no longer than a
// hand-over takes: until then Raft takes no change, not even the next claim of the shard.
func TestGroupLink_StandOfAMemberThatHangs(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader := linkedGroups{t, w.addWith("a", "one", peerConfig{Keys: [][]byte{nil}, leastLimit: standTime})}
	follower := linkedGroups{t, w.add("b", "one", nil)}
	follower.add(1, func(raft.RPC, bool, <-chan struct{}) bool { return true }) // and answers nothing
	from := leader.add(1, nil)
	began := time.Now()
	err := from.TimeoutNow("b", "b", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
	if took := time.Since(began); !errors.Is(err, errGroupTimeout) || took >= raftTimeout {
		t.Errorf("%v after %v, want a time-out after %v", err, took, standTime)
	}
}

// A node of a version that does not know the shared connection gets its messages by the groups' streams.
func TestGroupLink_OldPeer(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader := linkedGroups{t, w.add("a", "one", nil)}
	follower := linkedGroups{t, w.addWith("b", "one", peerConfig{Keys: [][]byte{nil}, old: true})}
	follower.answerStreams(1)
	from := leader.add(1, nil)
	for range 2 {
		if resp, err := beat(from, 1); err != nil || resp.LastLog != 99 {
			t.Errorf("%+v, %v", resp, err)
		}
	}
	if got := follower.port.openConns(kindRaft); got != 1 {
		t.Errorf("%d streams", got)
	}
}

// A connection that ends takes its heartbeats with it, and the next one opens another.
func TestGroupLink_ConnectionEnds(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	from, arrived := leader.add(1, nil), make(chan struct{}, 10)
	follower.add(1, func(raft.RPC, bool, <-chan struct{}) bool {
		arrived <- struct{}{}
		return true // and never answers
	})
	ways := map[string]func(link *groupLink, number uint32){
		"the node fell silent": func(*groupLink, uint32) { leader.port.disconnect("b") },
		"the other end closes": func(*groupLink, uint32) { follower.port.disconnect("a") },
		// As if its five seconds were over, and no answer had come over the connection.
		"an answer is missing": func(link *groupLink, number uint32) { link.abandon(number, time.Now()) },
		"the leader's group stops": func(*groupLink, uint32) {
			_ = from.Close()
		},
	}
	for _, name := range []string{"the node fell silent", "the other end closes", "an answer is missing", "the leader's group stops"} {
		failed := make(chan error, 1)
		go func() {
			_, err := beat(from, 1)
			failed <- err
		}()
		<-arrived
		link, err := leader.port.groupLink("b")
		if err != nil {
			t.Fatal(err)
		}
		other, _, err := link.enqueue(groupMessage{shard: 9, term: 1}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ways[name](link, other)
		if err := <-failed; err == nil || errors.Is(err, errOldPeer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	follower.add(2, nil)
	if resp, err := beat(leader.add(2, nil), 1); err != nil || resp.LastLog != 2 {
		t.Errorf("afterwards: %+v, %v", resp, err)
	}
	leader.port.close()
	if _, err := beat(leader.add(3, nil), 1); !errors.Is(err, errNotSent) {
		t.Errorf("after the port was closed: %v", err)
	}
}

// Messages that come when the connection has just ended are left for the next one.
func TestGroupLink_ConnectionEndedBeforeTheFrame(t *testing.T) {
	t.Parallel()
	l := &groupLink{link: newLink(newPeerNetwork(t).add("a", "one", nil), "b", kindGroups), wake: make(chan struct{}, 1)}
	ended, _ := net.Pipe()
	if _, _, err := l.enqueue(groupMessage{shard: 1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if frame := l.takeQueue(ended, nil); len(frame) != 0 || len(l.queue) != 1 || len(l.wake) != 1 {
		t.Errorf("a frame of %d bytes, %d left in the queue, woken %d times", len(frame), len(l.queue), len(l.wake))
	}
	l.conn, _ = net.Pipe()
	if frame := l.takeQueue(l.conn, nil); len(frame) != 2+groupMessageBytes || len(l.queue) != 0 {
		t.Errorf("a frame of %d bytes, %d left in the queue", len(frame), len(l.queue))
	}
}

// Messages to a node that can't be reached leave nothing behind, and many at once no memory.
func TestGroupLink_QueueStaysSmall(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	p := w.add("a", "one", nil)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	w.at["b"] = closed.Addr().String()
	for range 1000 {
		if _, err := p.sendGroup(t.Context(), "b", groupMessage{shard: 1}, true); !errors.Is(err, errNotSent) {
			t.Fatalf("sent to nobody: %v", err)
		}
	}
	l, err := p.groupLink("b")
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	left := len(l.queue)
	l.mu.Unlock()
	if left > 0 {
		t.Errorf("%d messages are left in the queue", left)
	}
	l = &groupLink{link: newLink(p, "c", kindGroups), wake: make(chan struct{}, 1)}
	for range 3 * maxGroupFrame {
		if _, _, err := l.enqueue(groupMessage{shard: 1}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	l.conn, _ = net.Pipe()
	if frame := l.takeQueue(l.conn, nil); len(frame) != 3*(2+maxGroupFrame*groupMessageBytes) || cap(l.queue) > maxGroupFrame {
		t.Errorf("a frame of %d bytes, room for %d in the queue", len(frame), cap(l.queue))
	}
}

// A heartbeat waits for those of other groups, unless readers wait for it.
func TestGroupLink_Hurry(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader := linkedGroups{t, w.addWith("a", "one", peerConfig{Keys: [][]byte{nil}, gather: time.Hour})}
	follower := linkedGroups{t, w.add("b", "one", nil)}
	follower.add(1, nil)
	follower.add(2, nil)
	first, second := leader.add(1, nil), leader.add(2, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := beat(first, 1)
		answered <- err
	}()
	link, err := leader.port.groupLink("b")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the heartbeat waits", func() bool {
		link.mu.Lock()
		defer link.mu.Unlock()
		return len(link.queue) > 0
	})
	end := second.beginRound()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if _, err := beat(second, 1); err != nil { // in the round
		t.Fatal(err)
	}
	end()
	go func() {
		_, err := beat(second, 1)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a heartbeat after the round did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	leader.port.hurryGroups()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

func FuzzGroupFrames(f *testing.F) {
	testkit.Corpus(f)
	f.Add(appendGroupFrame(nil, []groupMessage{{number: 1, shard: 2, term: 3}, {4, MaxShards, messageStand, 1 << 60, 5, 6}}, appendGroupMessage))
	f.Add(appendGroupFrame(nil, []groupAnswer{{1, groupRefuses, 3, 4}, {5, groupFails, 0, 0}}, appendGroupAnswer))
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(name string, whole []byte, err error) {
			if err == nil && !bytes.HasPrefix(b, whole) {
				t.Errorf("%s: %x was written as %x", name, b, whole)
			}
		}
		heartbeats := groupFrames[groupMessage]{from: bytes.NewReader(b), size: groupMessageBytes, read: readGroupMessage}
		items, err := heartbeats.next()
		check("heartbeats", appendGroupFrame(nil, items, appendGroupMessage), err)
		answers := groupFrames[groupAnswer]{from: bytes.NewReader(b), size: groupAnswerBytes, read: readGroupAnswer}
		replies, err := answers.next()
		check("answers", appendGroupFrame(nil, replies, appendGroupAnswer), err)
	})
}

func TestGroupFrames_Refused(t *testing.T) {
	t.Parallel()
	item := appendGroupMessage(nil, groupMessage{number: 1, shard: 1, term: 1})
	for name, b := range map[string][]byte{
		"none":            {0, 0},
		"too many":        append([]byte{0xff, 0xff}, bytes.Repeat(item, 0xffff)...),
		"an unknown kind": appendGroupFrame(nil, []groupMessage{{number: 1, shard: 1, kind: messageStand + 1}}, appendGroupMessage),
		"a shard too far": appendGroupFrame(nil, []groupMessage{{number: 1, shard: MaxShards + 1, term: 1}}, appendGroupMessage),
	} {
		frames := groupFrames[groupMessage]{from: bytes.NewReader(b), size: groupMessageBytes, read: readGroupMessage}
		if got, err := frames.next(); !errors.Is(err, errGroupFrame) {
			t.Errorf("%s: %v, %v", name, fmt.Sprint(len(got)), err)
		}
	}
}
