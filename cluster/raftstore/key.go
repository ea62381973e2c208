package raftstore

import (
	"encoding/binary"

	"switchyard/storage"
)

// Keys of the raft instance: shard (2 bytes)
//
// kind (1)
//
// rest. They are stored on disk.
const (
	KindIdentity byte = 0 // shard 0 only: the node's identity
	KindLog      byte = 1 // rest: index, 8 bytes big endian
	KindStable   byte = 2 // rest: Raft's name of the row
	KindSnapshot byte = 3
	KindDropping byte = 4 // exists while a replica is being deleted
	KindInstall  byte = 5 // exists while a received snapshot is being installed
	// KindEnd is above all kinds of a replica's rows.
	KindEnd byte = 6
	// Of shard 0 only: the last known registry, the generation of this data directory, and those that
	// this node has seen of others.
	KindMembers    byte = 16
	KindGeneration byte = 17
	KindSeen       byte = 18
)

const logKeyLen = 2 + 1 + 8

// Key returns the key of a row.
func Key(shard storage.Shard, kind byte, rest []byte) []byte {
	key := make([]byte, 0, 3+len(rest))
	key = binary.BigEndian.AppendUint16(key, uint16(shard))
	return append(append(key, kind), rest...)
}

// logKey encodes the key of an entry into dst, which has logKeyLen bytes.
func logKey(dst []byte, shard storage.Shard, index uint64) {
	binary.BigEndian.PutUint16(dst, uint16(shard))
	dst[2] = KindLog
	binary.BigEndian.PutUint64(dst[3:], index)
}
