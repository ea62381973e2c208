package cluster

import (
	"encoding/binary"
	"errors"
)

// A Raft command of a shard is an entry: kind (1 byte), epoch (8, big endian), body.
const (
	entryBatch   byte = 1 // body: a Pebble batch
	entryClaim   byte = 2 // body: the claiming node's name
	entryRelease byte = 3 // no body
)

const (
	entryHeader = 1 + 8
	// batchHeader is the size of a Pebble batch's header: sequence number (8 bytes, zero until the
	// commit), count of operations (4, little endian).
	batchHeader = 8 + 4
)

var errEntry = errors.New("cluster: replicated entry of an unknown format")

func appendEntry(dst []byte, kind byte, epoch uint64, body string) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, kind), epoch)
	return append(dst, body...)
}

func splitEntry(data []byte) (kind byte, epoch uint64, body []byte, err error) {
	if len(data) < entryHeader {
		return 0, 0, nil, errEntry
	}
	return data[0], binary.BigEndian.Uint64(data[1:]), data[entryHeader:], nil
}

// mergedSize returns the length of the entry that mergeBatches makes.
func mergedSize(proposals []proposal) int {
	size := entryHeader + batchHeader
	for _, p := range proposals {
		size += len(p.batch) - batchHeader
	}
	return size
}

// mergeBatches appends one entry with the operations of all proposals, in order, behind one batch
// header. They become visible together.
func mergeBatches(dst []byte, epoch uint64, proposals []proposal) []byte {
	dst = appendEntry(dst, entryBatch, epoch, "")
	header := len(dst)
	dst = append(dst, make([]byte, batchHeader)...)
	var count uint32
	for _, p := range proposals {
		count += binary.LittleEndian.Uint32(p.batch[8:])
		dst = append(dst, p.batch[batchHeader:]...)
	}
	binary.LittleEndian.PutUint32(dst[header+8:], count)
	return dst
}
