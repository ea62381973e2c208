package cluster

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// maxQueuedEntries bounds the requests of a group that wait for its member. A leader sends two at a
// time, and one more after each time that it waited in vain.
const maxQueuedEntries = 8

// entriesServer carries out the requests of one connection. It belongs to the connection's goroutine.
// A group that has requests has a goroutine of its own, which ends with them.
type entriesServer struct {
	port *peerPort
	conn net.Conn
	ctx  context.Context
	rest sync.WaitGroup

	mu     sync.Mutex
	queues map[storage.Shard][]entriesArrival // of the groups that have a goroutine; the first is under way

	writing sync.Mutex
	frame   []byte
}

// entriesArrival is a request that arrived.
type entriesArrival struct {
	number uint32
	args   *raft.AppendEntriesRequest
}

// serveEntries carries out requests of a connection until it ends.
func (p *peerPort) serveEntries(conn net.Conn, from string) {
	ctx, cancel := context.WithCancel(p.ctx)
	s := &entriesServer{port: p, conn: conn, ctx: ctx, queues: map[storage.Shard][]entriesArrival{}}
	defer s.rest.Wait()
	defer cancel()
	defer p.closeConn(conn)
	requests := entriesReader{from: bufio.NewReader(conn), partial: map[uint32][]byte{}}
	for {
		number, request, err := requests.next()
		if err != nil {
			return
		}
		shard, args, err := readEntriesRequest(request, from)
		if err != nil {
			p.cfg.Logger.Warn("closed a connection for entries", "node", from, "error", err)
			return
		}
		p.noteEntries(args, time.Now())
		if !s.enqueue(shard, entriesArrival{number, args}) {
			s.write(groupAnswer{number: number, result: groupFails})
		}
	}
}

// enqueue adds a request to those of its group, or returns false if they are too many.
func (s *entriesServer) enqueue(shard storage.Shard, a entriesArrival) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, runs := s.queues[shard]
	if len(queue) == maxQueuedEntries {
		return false
	}
	s.queues[shard] = append(queue, a)
	if !runs {
		s.rest.Go(func() { s.serve(shard, a) })
	}
	return true
}

// serve carries out the requests of a group, from the first one on.
func (s *entriesServer) serve(shard storage.Shard, a entriesArrival) {
	for more := true; more; a, more = s.following(shard) {
		if answer, ok := s.carryOut(shard, a); ok {
			s.write(answer)
		}
	}
}

// following takes the first request out of its queue and returns the one after it.
func (s *entriesServer) following(shard storage.Shard) (a entriesArrival, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[shard]
	queue[0] = entriesArrival{}
	if queue = queue[1:]; len(queue) == 0 {
		delete(s.queues, shard)
		return a, false
	}
	s.queues[shard] = queue
	return queue[0], true
}

// carryOut hands a request to the group's member and returns its answer, unless the connection ends.
func (s *entriesServer) carryOut(shard storage.Shard, a entriesArrival) (groupAnswer, bool) {
	reply := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: a.args, RespChan: reply}
	member := s.port.groupMember(shard)
	if member == nil || !member.arrive(&rpc) && !member.take(rpc, true, s.ctx.Done()) {
		return groupAnswer{number: a.number, result: groupAbsent}, true
	}
	select {
	case r := <-reply:
		return answerOf(a.number, r), true
	case <-s.ctx.Done():
		return groupAnswer{}, false
	}
}

// write writes an answer. An error ends the connection.
func (s *entriesServer) write(a groupAnswer) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.frame = appendGroupFrame(s.frame[:0], []groupAnswer{a}, appendGroupAnswer)
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.port.limit(raftTimeout)))
	if _, err := s.conn.Write(s.frame); err != nil {
		s.port.closeConn(s.conn)
	}
}
