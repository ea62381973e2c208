package cluster

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// The entries of all groups that go to one other node share a connection (kindEntries), so that the
// number of connections and their buffers does not grow with the number of shards. Entries of one
// group arrive, and are answered, in the order in which they were sent.
//
// A request is cut into pieces of at most entriesPiece bytes, and pieces of several groups' requests
// may alternate: the large entries of one tenant do not hold up the small ones of another. A piece is
//
//	number of the request (4 bytes, big endian), 1 for its last piece (1), length (4), bytes
//
// The bytes of a request are numbers (uvarints) and entries in the form of the log: shard, term,
// PrevLogEntry, PrevLogTerm, LeaderCommitIndex, count, and for each entry its index, length and bytes.
// The leader is the node that dialed. Answers have the form of those to messages (group_message.go).

const (
	entriesPiece     = 64 << 10
	entriesPieceHead = 4 + 1 + 4
	// maxEntriesBytes bounds a request: so many entries of the largest size.
	maxEntriesBytes = maxAppendEntries * (maxBatch + 1<<20)
)

// entriesSize returns an upper bound of the bytes of a request.
func entriesSize(a *raft.AppendEntriesRequest) int {
	size := 6 * binary.MaxVarintLen64
	for _, l := range a.Entries {
		size += 2*binary.MaxVarintLen64 + raftstore.EncodedLogSize(l)
	}
	return size
}

// appendEntriesRequest appends the bytes of a request.
func appendEntriesRequest(b []byte, shard storage.Shard, a *raft.AppendEntriesRequest) []byte {
	for _, v := range [...]uint64{uint64(shard), a.Term, a.PrevLogEntry, a.PrevLogTerm, a.LeaderCommitIndex, uint64(len(a.Entries))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, l := range a.Entries {
		b = binary.AppendUvarint(b, l.Index)
		b = binary.AppendUvarint(b, uint64(raftstore.EncodedLogSize(l)))
		b = raftstore.AppendLog(b, l)
	}
	return b
}

// readEntriesRequest reads a request from the leader on a node. Its entries are slices of b. The error
// wraps errGroupFrame.
func readEntriesRequest(b []byte, node string) (storage.Shard, *raft.AppendEntriesRequest, error) {
	var head [6]uint64
	for i := range head {
		var ok bool
		if head[i], b, ok = cutUvarint(b); !ok {
			return 0, nil, errGroupFrame
		}
	}
	shard, count := head[0], head[5]
	if shard > MaxShards || count > maxAppendEntries {
		return 0, nil, errGroupFrame
	}
	name := []byte(node)
	a := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: name, Addr: name},
		Term:      head[1], PrevLogEntry: head[2], PrevLogTerm: head[3], LeaderCommitIndex: head[4],
	}
	if count > 0 {
		a.Entries = make([]*raft.Log, count)
	}
	for i := range a.Entries {
		index, rest, ok := cutUvarint(b)
		size, rest, more := cutUvarint(rest)
		if !ok || !more || size > uint64(len(rest)) {
			return 0, nil, errGroupFrame
		}
		var err error
		if a.Entries[i], err = raftstore.DecodeLog(rest[:size:size], index); err != nil {
			return 0, nil, fmt.Errorf("%w: entry %d of shard %d: %w", errGroupFrame, index, shard, err)
		}
		b = rest[size:]
	}
	if len(b) > 0 {
		return 0, nil, errGroupFrame
	}
	return storage.Shard(shard), a, nil
}

func cutUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, b, false
	}
	return v, b[n:], true
}

// putPieceHead writes the head of a piece into b, which has entriesPieceHead bytes.
func putPieceHead(b []byte, number uint32, last bool, size int) {
	binary.BigEndian.PutUint32(b, number)
	b[4] = 0
	if last {
		b[4] = 1
	}
	binary.BigEndian.PutUint32(b[5:], uint32(size))
}

// entriesReader puts requests together from their pieces.
type entriesReader struct {
	from    io.Reader
	partial map[uint32][]byte // requests without their last piece, by number
}

// next returns the bytes of the next request that is complete.
func (r *entriesReader) next() (number uint32, request []byte, err error) {
	for {
		var head [entriesPieceHead]byte
		if _, err := io.ReadFull(r.from, head[:]); err != nil {
			return 0, nil, err
		}
		number, last, size := binary.BigEndian.Uint32(head[:]), head[4] == 1, int(binary.BigEndian.Uint32(head[5:]))
		had := r.partial[number]
		if head[4] > 1 || size < 1 || size > entriesPiece || len(had)+size > maxEntriesBytes || had == nil && len(r.partial) >= maxGroupFrame {
			return 0, nil, errGroupFrame
		}
		piece := make([]byte, size)
		if _, err := io.ReadFull(r.from, piece); err != nil {
			return 0, nil, err
		}
		if had != nil {
			piece = append(had, piece...)
		}
		if last {
			delete(r.partial, number)
			return number, piece, nil
		}
		r.partial[number] = piece
	}
}
