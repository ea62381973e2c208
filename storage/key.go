package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Shard numbers a replication group. Shard 0 is the directory; workspaces live
// in the shards from 1 on.
type Shard uint16

// TableID names a table or an index inside a workspace's key range. Numbers
// are never reused: a golden test pins them.
type TableID byte

// ID is a UUID in binary form.
type ID [16]byte

// SystemID is the key range of a shard's own rows: applied position, owner's
// epoch, and indexes that span the workspaces of the shard.
var SystemID = ID{}

// DirectoryID is the key range of the service-wide directory, kept in shard 0.
var DirectoryID = ID{15: 1}

// ServiceID is the key range of a shard in which settings of the whole service are kept, so that
// the shard's owner has them in its own state.
func ServiceID(shard Shard) ID { return ID{13: 1, 14: byte(shard >> 8), 15: byte(shard)} }

// IsService reports whether an id names a key range of the service: it is no workspace.
func (id ID) IsService() bool { return [13]byte(id[:13]) == [13]byte{} }

// DirectoryShard holds DirectoryID.
const DirectoryShard Shard = 0

// ShardOf tells which shard holds a workspace, of the given number of
// workspace shards (the directory's not counted).
func ShardOf(workspace ID, shards int) Shard {
	if workspace[6] == 0 && workspace.IsService() { // workspaces have ids of version 7
		if workspace[13] == 1 {
			return Shard(workspace[14])<<8 | Shard(workspace[15])
		}
		return DirectoryShard
	}
	return Shard(1 + xxhash.Sum64(workspace[:])%uint64(shards))
}

const hexDigits = "0123456789abcdef"

// String is the UUID's canonical lower-case text.
func (id ID) String() string { return string(id.AppendText(make([]byte, 0, 36))) }

// AppendText appends the canonical text to b.
func (id ID) AppendText(b []byte) []byte {
	for i, c := range id {
		switch i {
		case 4, 6, 8, 10:
			b = append(b, '-')
		}
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

// ParseID reads the canonical lower-case text of a UUID; false for anything
// else.
func ParseID[S ~string | ~[]byte](s S) (ID, bool) {
	var id ID
	if len(s) != 36 {
		return ID{}, false
	}
	j := 0
	for i := 0; i < 36; {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return ID{}, false
			}
			i++
			continue
		}
		hi, ok1 := hexValue(s[i])
		lo, ok2 := hexValue(s[i+1])
		if !ok1 || !ok2 {
			return ID{}, false
		}
		id[j] = hi<<4 | lo
		j++
		i += 2
	}
	return id, true
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// Key is a key, or the part of one behind a table's prefix, built field by field. Encoded fields
// sort like their values.
type Key []byte

// ID appends an identifier, oldest first (UUIDv7 begins with its time).
func (k Key) ID(id ID) Key { return append(k, id[:]...) }

// DescID appends an identifier inverted, so that iterating forward meets the
// newest first.
func (k Key) DescID(id ID) Key {
	for _, c := range id {
		k = append(k, ^c)
	}
	return k
}

// Str appends a text and its end. Texts hold no NUL as a rule; one that does
// keeps its place in the order and can't be taken for another with more fields.
func (k Key) Str(s string) Key {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return append(append(k, s...), 0)
	}
	for i := range len(s) {
		if s[i] <= 1 { // 0 and 1 become 1 1 and 1 2
			k = append(k, 1, s[i]+1)
			continue
		}
		k = append(k, s[i])
	}
	return append(k, 0)
}

// CutStr takes a text that Str wrote from the front of a key; false when there is
// none.
func CutStr(key []byte) (s string, rest []byte, ok bool) {
	end := bytes.IndexByte(key, 0)
	if end < 0 {
		return "", nil, false
	}
	text, rest := key[:end], key[end+1:]
	if bytes.IndexByte(text, 1) < 0 {
		return string(text), rest, true
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == 1 {
			if i++; i == len(text) || text[i] != 1 && text[i] != 2 {
				return "", nil, false
			}
			c = text[i] - 1
		}
		plain = append(plain, c)
	}
	return string(plain), rest, true
}

// Byte appends one byte.
func (k Key) Byte(b byte) Key { return append(k, b) }

// U64 appends a number, smallest first.
func (k Key) U64(n uint64) Key { return binary.BigEndian.AppendUint64(k, n) }

// prefixLen is the length of shard and workspace in front of every key.
const prefixLen = 2 + 16

// rangePrefix is the common start of every key of a workspace.
func rangePrefix(shard Shard, workspace ID) (p [prefixLen]byte) {
	binary.BigEndian.PutUint16(p[:], uint16(shard))
	copy(p[2:], workspace[:])
	return p
}

// WorkspaceRange returns the bounds [start, end) of a workspace's keys.
func WorkspaceRange(shard Shard, workspace ID) (start, end []byte) {
	p := rangePrefix(shard, workspace)
	return p[:], successor(p[:])
}

// ShardRange returns the bounds [start, end) of all keys of a shard.
func ShardRange(shard Shard) (start, end []byte) {
	start = binary.BigEndian.AppendUint16(nil, uint16(shard))
	return start, successor(start)
}

// successor is the first key behind every key that begins with prefix; nil
// when there is none.
func successor(prefix []byte) []byte {
	return appendSuccessor(nil, prefix)
}

func appendSuccessor(b, prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return append(append(b, prefix[:i]...), prefix[i]+1)
		}
	}
	return nil
}

// SplitKey takes a full key apart.
func SplitKey(key []byte) (shard Shard, workspace ID, table TableID, fields []byte, err error) {
	if len(key) < prefixLen+1 {
		return 0, ID{}, 0, nil, errors.New("storage: key shorter than its prefix")
	}
	shard = Shard(binary.BigEndian.Uint16(key))
	copy(workspace[:], key[2:])
	return shard, workspace, TableID(key[prefixLen]), key[prefixLen+1:], nil
}
