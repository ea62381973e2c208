package cluster

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// someEntries is a request from node a with count entries of a size, of which the first has what
// entries may have beside data.
func someEntries(term, prev uint64, count, size int) *raft.AppendEntriesRequest {
	name := []byte("a")
	a := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: name, Addr: name},
		Term:      term, PrevLogEntry: prev, PrevLogTerm: term - 1, LeaderCommitIndex: prev / 2,
	}
	for i := range count {
		l := &raft.Log{Index: prev + 1 + uint64(i), Term: term, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(i + 1)}, size)}
		if i == 0 {
			l.Type, l.Extensions, l.AppendedAt = raft.LogConfiguration, []byte("more"), time.Unix(1700000000, 5)
		}
		a.Entries = append(a.Entries, l)
	}
	return a
}

// Requests arrive with all that they have, whatever their size, and so do the answers.
func TestEntriesLink_CarriesRequests(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	got := make(chan *raft.AppendEntriesRequest, 1)
	reply := raft.RPCResponse{}
	follower.add(7, func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool {
		got <- rpc.Command.(*raft.AppendEntriesRequest)
		rpc.Respond(reply.Response, reply.Error)
		return true
	})
	from := leader.add(7, nil)
	for name, sent := range map[string]*raft.AppendEntriesRequest{
		"no entries":   someEntries(3, 8, 0, 0),
		"some":         someEntries(3, 8, 3, 100),
		"one piece":    someEntries(3, 8, 1, entriesPiece-200),
		"two pieces":   someEntries(3, 8, 1, entriesPiece),
		"many pieces":  someEntries(3, 8, maxAppendEntries, 5*entriesPiece+17),
		"one large":    someEntries(3, 8, 1, 4<<20),
		"an empty one": someEntries(3, 0, 1, 0),
	} {
		reply.Response = &raft.AppendEntriesResponse{Term: 3, LastLog: 12, Success: true}
		var resp raft.AppendEntriesResponse
		if err := from.AppendEntries("b", "b", sent, &resp); err != nil || !resp.Success || resp.Term != 3 || resp.LastLog != 12 {
			t.Fatalf("%s: %+v, %v", name, resp, err)
		}
		arrived := <-got
		for _, l := range arrived.Entries {
			if len(l.Data) == 0 {
				l.Data = []byte{} // as it was sent
			}
		}
		if !reflect.DeepEqual(arrived, sent) {
			t.Errorf("%s arrived otherwise", name)
		}
	}
	for _, want := range []raft.AppendEntriesResponse{{Term: 9}, {Term: 3, LastLog: 5, NoRetryBackoff: true}} {
		want.RPCHeader, reply.Response = answerHeader, &want
		var resp raft.AppendEntriesResponse
		if err := from.AppendEntries("b", "b", someEntries(3, 8, 1, 1), &resp); err != nil || !reflect.DeepEqual(resp, want) {
			t.Errorf("%+v, not %+v; %v", resp, want, err)
		}
		<-got
	}
	reply = raft.RPCResponse{Error: io.ErrUnexpectedEOF}
	if err := from.AppendEntries("b", "b", someEntries(3, 8, 1, 1), &raft.AppendEntriesResponse{}); !errors.Is(err, errGroupFails) {
		t.Errorf("a group that fails: %v", err)
	}
	if err := leader.add(8, nil).AppendEntries("b", "b", someEntries(3, 8, 1, 1), &raft.AppendEntriesResponse{}); !errors.Is(err, errGroupAbsent) {
		t.Errorf("a shard that is not there: %v", err)
	}
	for kind, want := range map[byte]int{kindEntries: 1, kindRaft: 0} {
		if got := follower.port.openConns(kind); got != want {
			t.Errorf("%d connections of kind %q, not %d", got, kind, want)
		}
	}
}

// The pipelines of many groups share a connection. Each group gets its requests in order, and so does
// each pipeline its answers.
func TestEntriesLink_Pipelines(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	const requests = 40
	var all sync.WaitGroup
	for shard := range storage.Shard(12) {
		var newest uint64
		follower.add(shard, func(rpc raft.RPC, _ bool, _ <-chan struct{}) bool {
			asks := rpc.Command.(*raft.AppendEntriesRequest)
			resp := &raft.AppendEntriesResponse{Term: asks.Term, Success: asks.PrevLogEntry == newest}
			newest += uint64(len(asks.Entries))
			resp.LastLog = newest
			rpc.Respond(resp, nil)
			return true
		})
		pipeline, err := leader.add(shard, nil).AppendEntriesPipeline("b", "b")
		if err != nil {
			t.Fatal(err)
		}
		size := 100
		if shard == 3 {
			size = 300 << 10 // in pieces
		}
		all.Go(func() {
			for i := range uint64(requests) {
				if _, err := pipeline.AppendEntries(someEntries(1, 2*i, 2, size), new(raft.AppendEntriesResponse)); err != nil {
					t.Errorf("shard %d, request %d: %v", shard, i, err)
					return
				}
			}
		})
		all.Go(func() {
			for i := range uint64(requests) {
				answer := <-pipeline.Consumer()
				if err := answer.Error(); err != nil || !answer.Response().Success || answer.Request().PrevLogEntry != 2*i || answer.Response().LastLog != 2*i+2 {
					t.Errorf("shard %d, answer %d: %+v, %v", shard, i, answer.Response(), err)
				}
			}
			_ = pipeline.Close()
			if _, err := pipeline.AppendEntries(someEntries(1, 1, 1, 1), new(raft.AppendEntriesResponse)); !errors.Is(err, raft.ErrPipelineShutdown) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
	all.Wait()
}

// A group that carries nothing out holds up no other, and bounds what waits for it.
func TestEntriesLink_BusyGroup(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	free := make(chan struct{})
	follower.add(1, func(rpc raft.RPC, _ bool, quit <-chan struct{}) bool {
		select {
		case <-free:
			rpc.Respond(&raft.AppendEntriesResponse{Success: true, LastLog: rpc.Command.(*raft.AppendEntriesRequest).PrevLogEntry}, nil)
			return true
		case <-quit:
			return false
		}
	})
	follower.add(2, nil)
	link, err := leader.port.entriesLink("b")
	if err != nil {
		t.Fatal(err)
	}
	var sent []sentEntries
	for i := range uint64(maxQueuedEntries + 3) {
		s, err := link.send(1, someEntries(1, i, 1, 10))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, s)
	}
	other := leader.add(2, nil)
	var resp raft.AppendEntriesResponse
	if err := other.AppendEntries("b", "b", someEntries(1, 1, 1, 1), &resp); err != nil || resp.LastLog != 2 {
		t.Errorf("another group: %+v, %v", resp, err)
	}
	for _, s := range sent[maxQueuedEntries:] {
		if _, err := s.await(t.Context()); !errors.Is(err, errGroupFails) {
			t.Errorf("too many: %v", err)
		}
	}
	close(free)
	for i, s := range sent[:maxQueuedEntries] {
		if a, err := s.await(t.Context()); err != nil || a.last != uint64(i) {
			t.Errorf("request %d: %+v, %v", i, a, err)
		}
	}
}

// A connection that ends fails the requests under way, and the next one opens another.
func TestEntriesLink_ConnectionEnds(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader, follower := linkedGroups{t, w.add("a", "one", nil)}, linkedGroups{t, w.add("b", "one", nil)}
	arrived := make(chan struct{}, 10)
	follower.add(1, func(raft.RPC, bool, <-chan struct{}) bool {
		arrived <- struct{}{}
		return true // and never answers
	})
	from := leader.add(1, nil)
	ways := []func(){
		func() { leader.port.disconnect("b") },
		func() { follower.port.disconnect("a") },
		func() { _ = from.Close() },
	}
	for i, end := range ways {
		pipeline, err := from.AppendEntriesPipeline("b", "b")
		if err != nil {
			t.Fatal(err)
		}
		future, err := pipeline.AppendEntries(someEntries(1, 1, 1, 1), new(raft.AppendEntriesResponse))
		if err != nil {
			t.Fatal(err)
		}
		<-arrived
		end()
		if err := future.Error(); err == nil {
			t.Errorf("way %d: a request without an answer succeeded", i)
		}
		_ = pipeline.Close()
	}
	follower.add(2, nil)
	var resp raft.AppendEntriesResponse
	if err := leader.add(2, nil).AppendEntries("b", "b", someEntries(1, 1, 1, 1), &resp); err != nil || resp.LastLog != 2 {
		t.Errorf("afterwards: %+v, %v", resp, err)
	}
	if err := leader.add(3, nil).AppendEntries("nobody", "nobody", someEntries(1, 1, 1, 1), &resp); !errors.Is(err, errNotSent) {
		t.Errorf("an unknown node: %v", err)
	}
}

// A node of a version without the shared connection gets entries by the groups' streams.
func TestEntriesLink_OldPeer(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	leader := linkedGroups{t, w.add("a", "one", nil)}
	follower := linkedGroups{t, w.addWith("b", "one", peerConfig{Keys: [][]byte{nil}, old: true})}
	follower.answerStreams(1)
	from := leader.add(1, nil)
	var resp raft.AppendEntriesResponse
	if err := from.AppendEntries("b", "b", someEntries(1, 1, 1, 1), &resp); err != nil || resp.LastLog != 99 {
		t.Errorf("%+v, %v", resp, err)
	}
	pipeline, err := from.AppendEntriesPipeline("b", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipeline.Close() }()
	if _, err := pipeline.AppendEntries(someEntries(1, 1, 1, 1), new(raft.AppendEntriesResponse)); err != nil {
		t.Fatal(err)
	}
	if answer := <-pipeline.Consumer(); answer.Error() != nil || answer.Response().LastLog != 99 {
		t.Errorf("by pipeline: %+v, %v", answer.Response(), answer.Error())
	}
}

// pieces cuts requests into pieces in turns.
func pieces(requests ...[]byte) []byte {
	var b []byte
	for left := true; left; {
		left = false
		for i := range requests {
			n := min(len(requests[i]), entriesPiece)
			if n == 0 {
				continue
			}
			head := make([]byte, entriesPieceHead)
			putPieceHead(head, uint32(i), n == len(requests[i]), n)
			b = append(append(b, head...), requests[i][:n]...)
			requests[i], left = requests[i][n:], true
		}
	}
	return b
}

func TestEntriesReader(t *testing.T) {
	t.Parallel()
	large, small := bytes.Repeat([]byte("large"), 100_000), []byte("small")
	r := entriesReader{from: bytes.NewReader(pieces(large, small)), partial: map[uint32][]byte{}}
	for _, want := range []struct {
		number uint32
		bytes  []byte
	}{{1, small}, {0, large}} { // the small one does not wait for the rest of the large one
		if number, got, err := r.next(); err != nil || number != want.number || !bytes.Equal(got, want.bytes) {
			t.Errorf("request %d: %d bytes, number %d, %v", want.number, len(got), number, err)
		}
	}
	if _, _, err := r.next(); !errors.Is(err, io.EOF) || len(r.partial) != 0 {
		t.Errorf("at the end: %v, %d in parts", err, len(r.partial))
	}
	for name, b := range map[string][]byte{
		"nothing in it": make([]byte, entriesPieceHead),
		"too large":     {0, 0, 0, 1, 1, 0, 1, 0, 1},
		"unknown mark":  {0, 0, 0, 1, 2, 0, 0, 0, 1, 1},
	} {
		r := entriesReader{from: bytes.NewReader(b), partial: map[uint32][]byte{}}
		if _, _, err := r.next(); !errors.Is(err, errGroupFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadEntriesRequest_Refused(t *testing.T) {
	t.Parallel()
	whole := appendEntriesRequest(nil, 3, someEntries(2, 9, 2, 20))
	if shard, _, err := readEntriesRequest(bytes.Clone(whole), "a"); err != nil || shard != 3 {
		t.Fatalf("%d, %v", shard, err)
	}
	for n := range whole {
		if _, _, err := readEntriesRequest(bytes.Clone(whole[:n]), "a"); !errors.Is(err, errGroupFrame) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1]++
	many := someEntries(2, 9, maxAppendEntries+1, 1)
	for name, b := range map[string][]byte{
		"more behind it":     append(bytes.Clone(whole), 0),
		"a damaged entry":    damaged,
		"too many":           appendEntriesRequest(nil, 3, many),
		"a shard too far":    appendEntriesRequest(nil, MaxShards+1, someEntries(2, 9, 1, 1)),
		"a count without it": appendEntriesRequest(nil, 3, someEntries(2, 9, 0, 0))[:5],
	} {
		if _, _, err := readEntriesRequest(b, "a"); !errors.Is(err, errGroupFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzEntriesRequest(f *testing.F) {
	testkit.Corpus(f)
	f.Add(appendEntriesRequest(nil, 3, someEntries(2, 9, 3, 20)))
	f.Add(appendEntriesRequest(nil, MaxShards, someEntries(1<<63, 1<<63, 0, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		shard, args, err := readEntriesRequest(bytes.Clone(b), "a")
		if err != nil {
			return
		}
		again, second, err := readEntriesRequest(appendEntriesRequest(nil, shard, args), "a")
		if err != nil || again != shard || !reflect.DeepEqual(second, args) {
			t.Errorf("%x: %+v, then %+v, %v", b, args, second, err)
		}
	})
}

func FuzzEntriesReader(f *testing.F) {
	testkit.Corpus(f)
	f.Add(pieces([]byte("one"), bytes.Repeat([]byte("two"), 30_000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := entriesReader{from: bytes.NewReader(b), partial: map[uint32][]byte{}}
		for {
			_, request, err := r.next()
			if err != nil {
				return
			}
			if len(request) == 0 || len(request) > len(b) {
				t.Fatalf("a request of %d bytes", len(request))
			}
		}
	})
}
