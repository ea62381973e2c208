package raftstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Layout of a stored log entry, format 2: format (1 byte), type (1), checksum (4, CRC-32C of index,
// type and the rest), term (uvarint), time of appending (8, Unix nanoseconds, 0: none), length of the
// extensions (uvarint), extensions, data. The index is in the key. Format 1 has no checksum.
const (
	logFormat      = 2
	logFormatNoSum = 1
	logSumLen      = 4
)

var (
	errLogEntry   = errors.New("raftstore: log entry of an unknown format")
	errLogDamaged = errors.New("raftstore: damaged log entry")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func logSum(index uint64, kind byte, rest []byte) uint32 {
	var head [9]byte
	binary.BigEndian.PutUint64(head[:], index)
	head[8] = kind
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, rest)
}

func logSize(l *raft.Log) int {
	return 2 + logSumLen + uvarintLen(l.Term) + 8 + uvarintLen(uint64(len(l.Extensions))) + len(l.Extensions) + len(l.Data)
}

func uvarintLen(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// putLog encodes the entry into dst, which has logSize bytes.
func putLog(dst []byte, l *raft.Log) {
	dst[0], dst[1] = logFormat, byte(l.Type)
	const head = 2 + logSumLen
	n := head + binary.PutUvarint(dst[head:], l.Term)
	var appended int64
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	binary.BigEndian.PutUint64(dst[n:], uint64(appended))
	n += 8
	n += binary.PutUvarint(dst[n:], uint64(len(l.Extensions)))
	n += copy(dst[n:], l.Extensions)
	copy(dst[n:], l.Data)
	binary.BigEndian.PutUint32(dst[2:], logSum(l.Index, dst[1], dst[head:]))
}

// readLog decodes an entry into l. Data and extensions are slices of one copy.
func readLog(src []byte, index uint64, l *raft.Log) error {
	return decodeLog(bytes.Clone(src), index, l)
}

// decodeLog decodes an entry into l, whose data and extensions are slices of src.
func decodeLog(src []byte, index uint64, l *raft.Log) error {
	if len(src) < 2 || src[0] != logFormat && src[0] != logFormatNoSum {
		return errLogEntry
	}
	kind, rest := src[1], src[2:]
	if src[0] == logFormat {
		if len(rest) < logSumLen || binary.BigEndian.Uint32(rest) != logSum(index, kind, rest[logSumLen:]) {
			return errLogDamaged
		}
		rest = rest[logSumLen:]
	}
	term, n := binary.Uvarint(rest)
	if n <= 0 || len(rest) < n+8 {
		return errLogEntry
	}
	appended := int64(binary.BigEndian.Uint64(rest[n:]))
	rest = rest[n+8:]
	extensions, n := binary.Uvarint(rest)
	if n <= 0 || extensions > uint64(len(rest)-n) {
		return errLogEntry
	}
	body := rest[n:]
	*l = raft.Log{Index: index, Term: term, Type: raft.LogType(kind), Data: body[extensions:]}
	if extensions > 0 {
		l.Extensions = body[:extensions:extensions]
	}
	if appended != 0 {
		l.AppendedAt = time.Unix(0, appended)
	}
	return nil
}

// EncodedLogSize is the number of bytes that AppendLog appends for an entry.
func EncodedLogSize(l *raft.Log) int { return logSize(l) }

// AppendLog appends an entry in the form in which the log stores it.
func AppendLog(b []byte, l *raft.Log) []byte {
	n := len(b)
	b = slices.Grow(b, logSize(l))[:n+logSize(l)]
	putLog(b[n:], l)
	return b
}

// DecodeLog reads the entry of an index that AppendLog wrote. Its data and extensions are slices of
// src. The error says whether the entry is damaged or of an unknown format.
func DecodeLog(src []byte, index uint64) (*raft.Log, error) {
	l := new(raft.Log)
	if err := decodeLog(src, index, l); err != nil {
		return nil, err
	}
	return l, nil
}
