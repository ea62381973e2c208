package cluster

import "sync/atomic"

// Batches differ in size by a factor of a thousand: most have some kilobytes, and one with an
// attachment has megabytes. One queue for all would let a workspace that sends attachments keep every
// other one of its shard waiting for them. So large batches have a queue of their own, from which
// entries are made as long as they take no more bytes than those of small ones (deficit round robin:
// Shreedhar and Varghese, SIGCOMM 1995).

const (
	// largeBatch is the size in bytes from which a batch is large.
	largeBatch = 64 << 10
	// laneQuantum is the least number of bytes that the large batches may take for each entry of small
	// ones.
	laneQuantum = 256 << 10
	// bulkyEntry is the size in bytes from which a batch waits while an entry as large is in flight:
	// entries of small batches that follow wait for the disk behind it.
	bulkyEntry = 1 << 20
)

// lanes are the proposals of a shard that wait for an entry. The committer's mutex guards them.
//
// A workspace proposes a batch when the one before is answered, so the order of its batches stays what
// it is. An empty batch is the exception: a workspace that does not know the outcome of a batch
// proposes one, and knows it when that is applied. So an empty batch overtakes nothing.
type lanes struct {
	small, large lane
	credit       int    // bytes that large batches may take
	seq          uint64 // of the newest proposal
}

// lane is a queue of proposals.
type lane struct {
	queue []proposal
	bytes int
}

// of returns the lane of a batch.
func (l *lanes) of(batch []byte) *lane {
	if len(batch) >= largeBatch || isEmpty(batch) && len(l.large.queue) > 0 {
		return &l.large
	}
	return &l.small
}

// isEmpty reports whether a batch has no operations.
func isEmpty(batch []byte) bool { return len(batch) == batchHeader }

// count returns the number of proposals.
func (l *lanes) count() int { return len(l.small.queue) + len(l.large.queue) }

// next returns the lane whose turn it is; nil if there is nothing to take. hold keeps bulky batches
// back: one is in flight.
func (l *lanes) next(hold bool) *lane {
	large := len(l.large.queue) > 0
	if large {
		first := &l.large.queue[0]
		older := len(l.small.queue) > 0 && l.small.queue[0].seq < first.seq
		large = !(hold && len(first.batch) >= bulkyEntry) && !(isEmpty(first.batch) && older)
	}
	switch {
	case large && (len(l.small.queue) == 0 || l.credit >= len(l.large.queue[0].batch)):
		return &l.large
	case len(l.small.queue) > 0:
		return &l.small
	}
	return nil
}

// most returns how many bytes an entry may take from a lane, given the bound of an entry.
func (l *lanes) most(from *lane, bytes int) int {
	if from == &l.large && len(l.small.queue) > 0 {
		return min(bytes, l.credit)
	}
	return bytes
}

// took accounts for an entry with so many bytes of a lane.
func (l *lanes) took(from *lane, bytes int) {
	switch {
	case len(l.large.queue) == 0 || len(l.small.queue) == 0 && from == &l.large:
		l.credit = 0 // nobody waits for the other
	case from == &l.large:
		l.credit = max(0, l.credit-bytes)
	default: // no more than the next large batch needs
		l.credit = min(l.credit+max(bytes, laneQuantum), len(l.large.queue[0].batch))
	}
}

// take moves the first proposals of a lane to dst, up to the bounds of an entry.
func (l *lane) take(dst []proposal, most, mostBytes int) (taken []proposal, size int) {
	n := 0
	for n < len(l.queue) && n < most {
		if grown := size + len(l.queue[n].batch); n > 0 && (grown > mostBytes || isEmpty(l.queue[n].batch)) {
			break // an empty batch waits for the other lane, too
		}
		size += len(l.queue[n].batch)
		n++
	}
	l.bytes -= size
	if n == len(l.queue) {
		taken, l.queue = l.queue, dst[:0]
		return taken, size
	}
	taken = dst[:0]
	taken = append(taken, l.queue[:n]...)
	left := copy(l.queue, l.queue[n:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
	return taken, size
}

// queueBudget bounds the bytes of large batches that wait on a node, in all its shards together.
type queueBudget struct {
	most int64
	used atomic.Int64
}

// take reserves bytes for a shard that has so many of them already, and reports whether that is
// possible. A shard that has more than what would be left for the others gets none.
func (b *queueBudget) take(bytes, has int) bool {
	left := b.most - b.used.Add(int64(bytes))
	if left < 0 || int64(has) > left {
		b.give(bytes)
		return false
	}
	return true
}

func (b *queueBudget) give(bytes int) { b.used.Add(-int64(bytes)) }
