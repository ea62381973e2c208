package cluster

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// Raft's leader sends each follower of its group a heartbeat some eight times a second. On a stream
// of each group's own an idle node would spend most of its time in the system calls of hundreds of
// groups. So the small messages of all groups to one other node share a connection (kindGroups), and
// the heartbeats of gatherHeartbeats share a frame. Frames go both ways on their own: a group that
// answers late delays no other's answer. Entries and snapshots go by streams of the groups' own.
//
// A node of a version without this refuses the connection, and gets all messages by the streams.
//
// A frame is the number of its items (2 bytes, big endian) and the items. Those of the dialing node
// are messages, those of the accepting node are answers.

// gatherHeartbeats is how long a heartbeat may wait for those of other groups.
const gatherHeartbeats = electionTimeout / 16

// maxGroupFrame bounds the items of a frame.
const maxGroupFrame = MaxShards + 1

// messageKind is the kind of a message between members of a group. The numbers are part of the
// protocol: never change or reuse one.
type messageKind byte

const (
	messageHeartbeat messageKind = 0
	messagePreVote   messageKind = 1
	messageVote      messageKind = 2
	messageTransfer  messageKind = 3 // a vote for a member that was told to stand for election
	messageStand     messageKind = 4 // stand for election now
)

// groupMessage is a message from a member of a group on the dialing node.
type groupMessage struct {
	number uint32 // the answer has it, too
	shard  storage.Shard
	kind   messageKind
	term   uint64
	// Of a request for a vote: the newest entry in the sender's log.
	lastIndex, lastTerm uint64
}

const groupMessageBytes = 4 + 2 + 1 + 8 + 8 + 8

// groupAnswer is the answer to a groupMessage, or to entries.
type groupAnswer struct {
	number uint32
	result groupResult
	term   uint64 // the answering member's
	last   uint64 // newest entry in its log; 0 for a vote
}

const groupAnswerBytes = 4 + 1 + 8 + 8

// groupResult says what came of a request. The numbers are part of the protocol.
type groupResult byte

const (
	groupRefuses groupResult = 0
	groupAgrees  groupResult = 1 // it follows, has the entries, grants the vote, or stands for election
	groupAbsent  groupResult = 2 // no replica of the shard runs there
	groupFails   groupResult = 3 // Raft answered with an error
	groupDiffers groupResult = 4 // entries that don't fit its log; others may be sent at once
)

var (
	errGroupAbsent = errors.New("cluster: the node runs no replica of the shard")
	errGroupFails  = errors.New("cluster: the replica could not take the request")
	errGroupFrame  = errors.New("cluster: not a frame of messages or entries of groups")
)

func appendGroupMessage(b []byte, m groupMessage) []byte {
	b = binary.BigEndian.AppendUint32(b, m.number)
	b = append(binary.BigEndian.AppendUint16(b, uint16(m.shard)), byte(m.kind))
	for _, v := range [...]uint64{m.term, m.lastIndex, m.lastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func readGroupMessage(b []byte) (groupMessage, error) {
	m := groupMessage{
		number: binary.BigEndian.Uint32(b), shard: storage.Shard(binary.BigEndian.Uint16(b[4:])), kind: messageKind(b[6]),
		term: binary.BigEndian.Uint64(b[7:]), lastIndex: binary.BigEndian.Uint64(b[15:]), lastTerm: binary.BigEndian.Uint64(b[23:]),
	}
	if m.shard > MaxShards || m.kind > messageStand {
		return m, errGroupFrame
	}
	return m, nil
}

func appendGroupAnswer(b []byte, a groupAnswer) []byte {
	b = append(binary.BigEndian.AppendUint32(b, a.number), byte(a.result))
	b = binary.BigEndian.AppendUint64(b, a.term)
	return binary.BigEndian.AppendUint64(b, a.last)
}

func readGroupAnswer(b []byte) (groupAnswer, error) {
	a := groupAnswer{
		number: binary.BigEndian.Uint32(b), result: groupResult(b[4]),
		term: binary.BigEndian.Uint64(b[5:]), last: binary.BigEndian.Uint64(b[13:]),
	}
	if a.result > groupDiffers {
		return a, errGroupFrame
	}
	return a, nil
}

// appendGroupFrame appends a frame of at most maxGroupFrame items.
func appendGroupFrame[T any](b []byte, items []T, appendItem func([]byte, T) []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(items)))
	for _, item := range items {
		b = appendItem(b, item)
	}
	return b
}

// groupFrames reads frames of items of a fixed size.
type groupFrames[T any] struct {
	from  io.Reader
	size  int // bytes of an item
	read  func([]byte) (T, error)
	buf   []byte
	items []T
}

// next returns the items of the next frame; they are valid until the next call. An empty frame, and
// one of more than maxGroupFrame items, is errGroupFrame.
func (f *groupFrames[T]) next() ([]T, error) {
	var head [2]byte
	if _, err := io.ReadFull(f.from, head[:]); err != nil {
		return nil, err
	}
	count := int(binary.BigEndian.Uint16(head[:]))
	if count < 1 || count > maxGroupFrame {
		return nil, errGroupFrame
	}
	if n := count * f.size; cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	b := f.buf[:count*f.size]
	if _, err := io.ReadFull(f.from, b); err != nil {
		return nil, err
	}
	f.items = f.items[:0]
	for ; len(b) > 0; b = b[f.size:] {
		item, err := f.read(b[:f.size])
		if err != nil {
			return nil, err
		}
		f.items = append(f.items, item)
	}
	return f.items, nil
}

// isHeartbeat reports whether a request is one of Raft's heartbeats and nothing else.
func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return a.Term != 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

// request returns the message as Raft's request, from the member on a node.
func (m groupMessage) request(node string) any {
	name := []byte(node)
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: name, Addr: name}
	switch m.kind {
	case messagePreVote:
		return &raft.RequestPreVoteRequest{RPCHeader: header, Term: m.term, LastLogIndex: m.lastIndex, LastLogTerm: m.lastTerm}
	case messageVote, messageTransfer:
		return &raft.RequestVoteRequest{
			RPCHeader: header, Term: m.term, LastLogIndex: m.lastIndex, LastLogTerm: m.lastTerm,
			LeadershipTransfer: m.kind == messageTransfer,
		}
	case messageStand:
		return &raft.TimeoutNowRequest{RPCHeader: header}
	}
	return &raft.AppendEntriesRequest{RPCHeader: header, Term: m.term}
}

// answerOf returns the answer to a request from that of Raft.
func answerOf(number uint32, r raft.RPCResponse) groupAnswer {
	a := groupAnswer{number: number, result: groupFails}
	if r.Error != nil {
		return a
	}
	var agrees bool
	switch resp := r.Response.(type) {
	case *raft.AppendEntriesResponse:
		agrees, a.term, a.last = resp.Success, resp.Term, resp.LastLog
		if !agrees && resp.NoRetryBackoff {
			a.result = groupDiffers
			return a
		}
	case *raft.RequestPreVoteResponse:
		agrees, a.term = resp.Granted, resp.Term
	case *raft.RequestVoteResponse:
		agrees, a.term = resp.Granted, resp.Term
	case *raft.TimeoutNowResponse:
		agrees = true
	default:
		return a
	}
	a.result = groupRefuses
	if agrees {
		a.result = groupAgrees
	}
	return a
}

// appendResponse fills Raft's response to entries or a heartbeat.
func (a groupAnswer) appendResponse(resp *raft.AppendEntriesResponse) {
	*resp = raft.AppendEntriesResponse{
		RPCHeader: answerHeader, Term: a.term, LastLog: a.last,
		Success: a.result == groupAgrees, NoRetryBackoff: a.result == groupDiffers,
	}
}

// err returns why there is no response of Raft's.
func (a groupAnswer) err() error {
	switch a.result {
	case groupAbsent:
		return errGroupAbsent
	case groupFails:
		return errGroupFails
	}
	return nil
}
