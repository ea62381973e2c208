package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// Bounds on what is noted and not yet applied, in bytes. Beyond the first the
// workspace's goroutine applies some of it with each batch, unless lists are read just
// then; beyond the second the sets are given up.
const (
	noteSoon = 64 << 10
	noteMost = 8 << 20
	// noteStep is how much the workspace's goroutine applies at a time.
	noteStep = 64 << 10
)

// notedBatches are batches that the sets have to be brought up to.
type notedBatches struct {
	mu    sync.Mutex
	queue []notedBatch // in the order of their proposals
	bytes int
}

// notedBatch is what one batch changes.
type notedBatch struct {
	from, to uint64 // versions
	ops      []byte
}

const notedBatchBytes = 48

func (b *notedBatch) size() int { return notedBatchBytes + cap(b.ops) }

func (n *notedBatches) size() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int64(n.bytes)
}

func (n *notedBatches) push(b notedBatch) (bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, b)
	n.bytes += b.size()
	return n.bytes
}

// pop takes the first batch that leads to a version not above most.
func (n *notedBatches) pop(most uint64) (notedBatch, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == 0 || n.queue[0].to > most {
		return notedBatch{}, false
	}
	b := n.queue[0]
	n.queue[0] = notedBatch{}
	if n.queue = n.queue[1:]; len(n.queue) == 0 {
		n.queue = nil
	}
	n.bytes -= b.size()
	return b, true
}

// Operations of noted batches. Behind each of the first two are the table, the length
// of the fields in two bytes, the fields and the doc; behind recordSet are the doc and
// until when it sleeps, and behind recordGone the doc.
const (
	entryGone byte = iota
	entrySet
	recordSet
	recordGone
)

// Note notes a batch of the workspace, which leads from one version to another, before
// it is proposed. The batch before must have been applied. It is called by the
// workspace's goroutine and never waits for lists.
func (f *FilterSets) Note(workspace *View, repr []byte, from, to uint64) {
	if f.Broken() {
		return
	}
	ops, err := f.parse(workspace, repr)
	if err != nil || len(ops) > 0 && from == to {
		f.Break()
		return
	}
	held := f.noted.push(notedBatch{from, to, ops})
	if held > noteSoon && f.Ready() && f.mu.TryLock() {
		f.catchUp(from, noteStep)
		f.mu.Unlock()
	}
	if held > noteMost {
		f.Break()
	}
}

var errNoted = errors.New("storage: a batch that filter sets can't follow")

// parse gives the operations of a batch that concern the sets.
func (f *FilterSets) parse(workspace *View, repr []byte) (ops []byte, err error) {
	reader := batchrepr.Read(repr)
	prefix := workspace.prefix[:]
	for {
		kind, key, value, ok, err := reader.Next()
		if err != nil || !ok {
			return ops, err
		}
		if kind == pebble.InternalKeyKindRangeDelete {
			if f.covers(prefix, key, value) {
				return nil, errNoted
			}
			continue
		}
		if len(key) <= prefixLen || !bytes.Equal(key[:prefixLen], prefix) || f.kinds[key[prefixLen]] == rowOther {
			continue
		}
		set := kind == pebble.InternalKeyKindSet
		if !set && kind != pebble.InternalKeyKindDelete {
			return nil, errNoted
		}
		if ops, err = f.appendOp(ops, TableID(key[prefixLen]), key[prefixLen+1:], value, set); err != nil {
			return nil, err
		}
	}
}

// covers reports whether a range of keys may have rows that the sets are made from.
func (f *FilterSets) covers(prefix, start, end []byte) bool {
	whole := len(start) <= prefixLen || len(end) <= prefixLen
	if whole || !bytes.Equal(start[:prefixLen], prefix) || !bytes.Equal(end[:prefixLen], prefix) {
		return bytes.Compare(start, successor(prefix)) < 0 && bytes.Compare(end, prefix) > 0
	}
	for t := int(start[prefixLen]); t <= int(end[prefixLen]); t++ {
		// A range that ends where a table begins has none of its rows.
		if f.kinds[t] != rowOther && (t < int(end[prefixLen]) || len(end) > prefixLen+1) {
			return true
		}
	}
	return false
}

func (f *FilterSets) appendOp(ops []byte, table TableID, key, value []byte, set bool) ([]byte, error) {
	if len(key) < ListedKeyLen {
		return nil, errNoted
	}
	switch f.kinds[table] {
	case rowRecord:
		doc := DocOfKey(key)
		if !set {
			return appendDoc(append(ops, recordGone), doc), nil
		}
		rec, err := ParseRecord(value)
		if err != nil {
			return nil, err
		}
		return binary.BigEndian.AppendUint64(appendDoc(append(ops, recordSet), doc), uint64(f.spec.Sleeps(rec))), nil
	case rowOwned:
		if !f.counts(table, key) {
			return ops, nil
		}
		return appendEntry(ops, table, nil, DocOf(ID(key[:len(ID{})])), set)
	case rowLeading:
		return appendEntry(ops, table, key[ListedKeyLen:], DocOfKey(key), set)
	}
	at := len(key) - ListedKeyLen
	return appendEntry(ops, table, key[:at], DocOfKey(key[at:]), set)
}

func appendEntry(ops []byte, table TableID, fields []byte, doc Doc, set bool) ([]byte, error) {
	if len(fields) > 0xffff {
		return nil, errNoted
	}
	op := entryGone
	if set {
		op = entrySet
	}
	ops = binary.BigEndian.AppendUint16(append(ops, op, byte(table)), uint16(len(fields)))
	return appendDoc(append(ops, fields...), doc), nil
}

// catchUp applies what was noted up to a version, at least most bytes of it if there
// is more. The sets' lock is held.
func (f *FilterSets) catchUp(version uint64, most int) {
	applied := false
	for most > 0 && !f.Broken() {
		b, ok := f.noted.pop(version)
		if !ok {
			break
		}
		if b.to <= f.version {
			continue // the sets were built from a later moment
		}
		if b.from != f.version || f.apply(b.ops) != nil {
			f.Break()
			break
		}
		f.version = b.to
		most -= notedBatchBytes + len(b.ops)
		applied = true
	}
	if applied {
		f.measure()
	}
}

// opLen is the length of the operation that ops begins with.
func opLen(ops []byte) int {
	switch ops[0] {
	case recordSet:
		return 17
	case recordGone:
		return 9
	}
	return 12 + int(binary.BigEndian.Uint16(ops[2:]))
}

// reachAll gives ordinals to the new records of a batch, which come in any order.
func (f *FilterSets) reachAll(ops []byte) {
	known := len(f.docs)
	newest := Doc(0)
	if known > 0 {
		newest = f.docs[known-1]
	}
	for ; len(ops) > 0; ops = ops[opLen(ops):] {
		if ops[0] != recordSet {
			continue
		}
		if doc := docIn(ops[1:]); doc > newest {
			f.docs = append(f.docs, doc)
		}
	}
	slices.Sort(f.docs[known:])
	f.docs = append(f.docs[:known], slices.Compact(f.docs[known:])...)
}

// apply carries out the operations of a batch.
func (f *FilterSets) apply(ops []byte) error {
	f.reachAll(ops)
	for len(ops) > 0 {
		op := ops[0]
		if op >= recordSet {
			ord, found := f.reach(docIn(ops[1:]))
			if !found {
				return fmt.Errorf("%w: a record that is older than it should be", errNoted)
			}
			if op == recordGone {
				f.gone(ord)
			} else {
				f.record(ord, int64(binary.BigEndian.Uint64(ops[9:])))
			}
			ops = ops[opLen(ops):]
			continue
		}
		n := int(binary.BigEndian.Uint16(ops[2:]))
		ord, found := f.reach(docIn(ops[4+n:]))
		if !found {
			return fmt.Errorf("%w: an entry of a record that isn't there", errNoted)
		}
		f.change(TableID(ops[1]), ops[4:4+n], ord, op == entrySet)
		ops = ops[opLen(ops):]
	}
	return nil
}
