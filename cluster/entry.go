package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"switchyard/storage"
)

// A Raft command of a shard is an entry: kind (1 byte), epoch (8, big endian), body.
const (
	entryBatch   byte = 1 // body: a Pebble batch
	entryClaim   byte = 2 // body: the claiming node's name
	entryRelease byte = 3 // no body
	entryPacked  byte = 4 // body: a Pebble batch, compressed as a block of S2
)

// entryFormats has, by kind of entry, the first format of the cluster that has it. A node that does
// not know a kind can't apply the entry, and its replica stops.
var entryFormats = map[byte]storage.Format{
	entryBatch: storage.FormatFirst, entryClaim: storage.FormatFirst,
	entryRelease: storage.FormatFirst, entryPacked: storage.FormatFirst,
}

var errEntryFormat = errors.New("cluster: not every node knows entries of this kind")

// checkEntryKind returns errEntryFormat unless a cluster that writes a format has entries of a kind.
func checkEntryKind(kind byte, format storage.Format) error {
	if since, ok := entryFormats[kind]; !ok || since > format {
		return fmt.Errorf("%w: kind %d in format %d", errEntryFormat, kind, format)
	}
	return nil
}

// packedFrom is the size of a batch in bytes from which an entry is compressed.
const packedFrom = 1 << 10

// packedBetterFrom is the size of an entry in bytes from which more processor time is spent on its
// compression. Only single large commands make such entries. They hold each large text several
// times, too far apart for the fast way to see it, and heartbeats wait while a follower's disk takes them.
const packedBetterFrom = 4 << 20

// maxUnpacked bounds the batch of an entry in bytes. Merged batches stay far below it.
const maxUnpacked = 64 << 20

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

// pack compresses an entry with a batch into the space of dst. It reports false if that
// does not make the entry smaller. An issue is in a batch twice, as itself and in its event, so an entry shrinks
// well, and it is written, synced and sent to each follower.
func pack(dst, data []byte) ([]byte, bool) {
	if len(data) < entryHeader+packedFrom {
		return nil, false
	}
	most := s2.MaxEncodedLen(len(data) - entryHeader)
	if most < 0 {
		return nil, false
	}
	if cap(dst) < entryHeader+most {
		dst = make([]byte, entryHeader+most)
	}
	dst = dst[:entryHeader+most]
	copy(dst, data[:entryHeader])
	dst[0] = entryPacked
	encode := s2.Encode
	if len(data) >= packedBetterFrom {
		encode = s2.EncodeBetter
	}
	body := encode(dst[entryHeader:], data[entryHeader:])
	return dst[:entryHeader+len(body)], entryHeader+len(body) < len(data)
}

// unpack returns the batch of a packed entry, in the space of dst if that is large enough.
func unpack(dst, body []byte) ([]byte, error) {
	size, err := s2.DecodedLen(body)
	if err == nil && size > maxUnpacked {
		err = fmt.Errorf("a batch of %d bytes", size)
	}
	if err == nil {
		dst, err = s2.Decode(dst[:cap(dst)], body)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEntry, err)
	}
	return dst, nil
}
