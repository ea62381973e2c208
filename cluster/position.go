package cluster

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// positionTable is the table, in the shard's own range, whose only row is the
// position. Never change or reuse it.
const positionTable storage.TableID = 255

// position is the position of a shard's state in its log. It is written in the batch that it
// describes, so that state and position agree after a crash.
type position struct {
	applied uint64 // index of the last entry in the state
	epoch   uint64 // the epoch claimed last; batches of other epochs are refused
	owner   string // the node that claimed it
	// released is set when the owner stopped answering before its last entry.
	released bool
	// settled is set when no other node can hold a read lease any more. A claim leaves it unset if
	// the last owner was another node that did not release, or if this node claimed before and had
	// not waited for that owner's lease to expire.
	settled bool
}

// Layout of the position, format 1: format (1 byte), flags (1), applied (8, big
// endian), epoch (8), owner.
const (
	positionFormat   = 1
	positionHeader   = 1 + 1 + 8 + 8
	positionReleased = 1
	positionSettled  = 2
)

var errPosition = errors.New("cluster: position of an unknown format")

func (p position) append(dst []byte) []byte {
	var flags byte
	if p.released {
		flags |= positionReleased
	}
	if p.settled {
		flags |= positionSettled
	}
	dst = append(dst, positionFormat, flags)
	dst = binary.BigEndian.AppendUint64(dst, p.applied)
	dst = binary.BigEndian.AppendUint64(dst, p.epoch)
	return append(dst, p.owner...)
}

func parsePosition(row []byte) (position, error) {
	if len(row) < positionHeader || row[0] != positionFormat {
		return position{}, errPosition
	}
	return position{
		applied:  binary.BigEndian.Uint64(row[2:]),
		epoch:    binary.BigEndian.Uint64(row[10:]),
		owner:    string(row[positionHeader:]),
		released: row[1]&positionReleased != 0,
		settled:  row[1]&positionSettled != 0,
	}, nil
}

func positionKey(shard storage.Shard) []byte {
	start, _ := storage.WorkspaceRange(shard, storage.SystemID)
	return append(start, byte(positionTable))
}

// readPosition reads the position of a shard's state; the zero position if nothing was applied yet.
func readPosition(state pebble.Reader, shard storage.Shard) (position, error) {
	row, err := raftstore.ReadRow(state, positionKey(shard))
	if err != nil || row == nil {
		return position{}, err
	}
	return parsePosition(row)
}

// claim starts a new epoch.
func (p *position) claim(epoch uint64, node string) {
	p.settled = p.owner == "" || p.released || p.owner == node && p.settled
	p.epoch, p.owner, p.released = epoch, node, false
}
