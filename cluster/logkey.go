package cluster

import (
	"encoding/binary"

	"switchyard/storage"
)

// Keys of the raft instance: shard (2 bytes) | kind (1) | rest. They are part of
// what is on disk.
const (
	kindIdentity byte = 0 // shard 0 only: what the node is
	kindLog      byte = 1 // rest: index, 8 bytes big endian
	kindStable   byte = 2 // rest: Raft's own name of the row
	kindSnapshot byte = 3
	kindDropping byte = 4 // there while a replica is being deleted
	kindInstall  byte = 5 // a snapshot from another node that is being put in place
	// kindEnd is above every kind of a replica's rows.
	kindEnd     byte = 6
	kindMembers byte = 16 // shard 0 only: the registry as last heard of
)

const logKeyLen = 2 + 1 + 8

func raftKey(shard storage.Shard, kind byte, rest []byte) []byte {
	key := make([]byte, 0, 3+len(rest))
	key = binary.BigEndian.AppendUint16(key, uint16(shard))
	return append(append(key, kind), rest...)
}

// logKey writes the key of an entry into dst, which has logKeyLen bytes.
func logKey(dst []byte, shard storage.Shard, index uint64) {
	binary.BigEndian.PutUint16(dst, uint16(shard))
	dst[2] = kindLog
	binary.BigEndian.PutUint64(dst[3:], index)
}
