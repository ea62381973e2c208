package cluster

import (
	"bufio"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// groupMember is a group's Raft member, as requests by the connections of all groups reach it.
type groupMember interface {
	// arrive sees a request first and reports whether it has answered it.
	arrive(rpc *raft.RPC) bool
	// take hands the member a request, and reports whether it did. If it may wait, it does until the
	// member takes the request, stops, or quit is closed; otherwise it returns false if the member is
	// busy.
	take(rpc raft.RPC, wait bool, quit <-chan struct{}) bool
}

// promptAnswer is how long the groups of a frame have to answer in one frame. Later answers, of
// members that wait for their disk for example, are sent one by one.
const promptAnswer = 2 * time.Millisecond

// maxLate bounds the messages of a kind that a group has not answered yet. The sender waits for one
// at a time, but not for ever.
const maxLate = 4

// groupServer answers the messages of one connection. It belongs to the connection's goroutine; a
// message that is answered late has a goroutine of its own, maxLate at most of a kind and group.
type groupServer struct {
	port *peerPort
	conn net.Conn
	from string // the node that dialed
	quit chan struct{}
	rest sync.WaitGroup
	// arrived and answers are those of the frame that is served, kept for the next one.
	arrived []groupArrival
	answers []groupAnswer

	mu    sync.Mutex // held while a frame is written
	late  map[groupTurn]int
	frame []byte
}

// groupTurn is a kind of messages to a group.
type groupTurn struct {
	shard storage.Shard
	kind  messageKind
}

// groupArrival is a message on its way through Raft.
type groupArrival struct {
	groupMessage
	member groupMember
	rpc    raft.RPC
	taken  bool // the member has it, or it is answered
	reply  chan raft.RPCResponse
}

// serveGroups answers messages on a connection until it ends.
func (p *peerPort) serveGroups(conn net.Conn, from string) {
	s := &groupServer{port: p, conn: conn, from: from, quit: make(chan struct{}), late: map[groupTurn]int{}}
	defer s.rest.Wait()
	defer close(s.quit)
	defer p.closeConn(conn)
	frames := groupFrames[groupMessage]{from: bufio.NewReader(conn), size: groupMessageBytes, read: readGroupMessage}
	for {
		messages, err := frames.next()
		if err != nil || s.serve(messages) != nil {
			return
		}
	}
}

// serve hands the messages of a frame to their groups and writes the answers that come promptly.
func (s *groupServer) serve(messages []groupMessage) error {
	answers, arrived := s.answers[:0], s.arrived[:0]
	for _, m := range messages {
		member := s.port.groupMember(m.shard)
		switch {
		case member == nil:
			answers = append(answers, groupAnswer{number: m.number, result: groupAbsent})
			continue
		case !s.begin(m):
			continue // the sender's time will be up
		}
		reply := make(chan raft.RPCResponse, 1)
		a := groupArrival{groupMessage: m, member: member, reply: reply, rpc: raft.RPC{Command: m.request(s.from), RespChan: reply}}
		a.taken = member.arrive(&a.rpc) || member.take(a.rpc, false, s.quit)
		arrived = append(arrived, a)
	}
	timer := time.NewTimer(promptAnswer)
	defer timer.Stop()
	over := false
	for _, a := range arrived {
		if r, ok := a.prompt(timer, &over); ok {
			answers = append(answers, answerOf(a.number, r))
			s.end(a.groupMessage)
			continue
		}
		late := a // only this one needs memory of its own
		s.rest.Go(func() { s.await(late) })
	}
	clear(arrived) // keeps nothing of a group alive
	s.answers, s.arrived = answers, arrived
	return s.write(answers)
}

// prompt returns the answer if it comes before the timer, which is over for all later ones then.
func (a *groupArrival) prompt(timer *time.Timer, over *bool) (r raft.RPCResponse, ok bool) {
	if !a.taken {
		return r, false
	}
	if *over {
		select {
		case r = <-a.reply:
			return r, true
		default:
			return r, false
		}
	}
	select {
	case r = <-a.reply:
		return r, true
	case <-timer.C:
		*over = true
		return r, false
	}
}

// begin notes that a group has a message, and returns false if it has too many of the kind.
func (s *groupServer) begin(m groupMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := groupTurn{m.shard, m.kind}
	if s.late[turn] == maxLate {
		return false
	}
	s.late[turn]++
	return true
}

func (s *groupServer) end(m groupMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := groupTurn{m.shard, m.kind}
	if s.late[turn]--; s.late[turn] == 0 {
		delete(s.late, turn)
	}
}

// await sends the answer of a group that did not answer promptly, when it comes.
func (s *groupServer) await(a groupArrival) {
	defer s.end(a.groupMessage)
	if !a.taken && !a.member.take(a.rpc, true, s.quit) {
		_ = s.write([]groupAnswer{{number: a.number, result: groupAbsent}})
		return
	}
	select {
	case r := <-a.reply:
		_ = s.write([]groupAnswer{answerOf(a.number, r)})
	case <-s.quit:
	}
}

// write writes a frame of answers. An error ends the connection.
func (s *groupServer) write(answers []groupAnswer) error {
	if len(answers) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame = appendGroupFrame(s.frame[:0], answers, appendGroupAnswer)
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.port.limit(raftTimeout)))
	_, err := s.conn.Write(s.frame)
	if err != nil {
		s.port.closeConn(s.conn)
	}
	return err
}
