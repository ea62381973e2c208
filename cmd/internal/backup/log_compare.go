package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"switchyard/cluster"
)

// When the data of a node alone, or of a whole cluster, is put back to an earlier state, the cluster goes on
// from there, and the archive gets other entries with the same indexes. Nothing says which of the two
// histories an image belongs to, so a moment behind the first entry that differs is refused.

// overlapsRead bounds the segments that are compared with one of a chain. The entries of the history that
// was left end with the last ones.
const overlapsRead = 8

// overlap has entries of another segment that those of the open segment are compared with.
type overlap struct {
	first   uint64
	entries []entrySum
}

type entrySum struct {
	sum [sha256.Size]byte
	at  time.Time
}

// sumOf returns the sum of the parts of an entry that are the same on all replicas. The data of Raft's own
// entries changes no row.
func sumOf(e *cluster.LogEntry) entrySum {
	h := sha256.New()
	head := binary.BigEndian.AppendUint64(nil, e.Term)
	if e.Command {
		_, _ = h.Write(append(head, flagCommand)) // never fails, as below
		_, _ = h.Write(e.Data)
	} else {
		_, _ = h.Write(append(head, 0))
	}
	return entrySum{[sha256.Size]byte(h.Sum(nil)), e.AppendedAt}
}

// overlaps reads the entries that other segments have in common with the one that was opened last. Those that
// were opened before it have been compared with it.
func (r *logReader) overlaps(ctx context.Context, s *segment) error {
	r.others = nil
	var some []*segment
	all := r.logs.segments[logOf{s.cluster, s.shard}]
	for i := range all {
		if o := &all[i]; !o.unusable && o.first <= s.last && o.last >= s.first && !r.opened[o.name()] {
			some = append(some, o)
		}
	}
	slices.SortStableFunc(some, func(a, b *segment) int { return cmp.Compare(b.last, a.last) })
	for _, o := range some[:min(len(some), overlapsRead)] {
		other, err := r.logs.archive.sums(ctx, o, s)
		switch {
		case errors.Is(err, errDamaged):
			r.logs.leaveOut(o, err)
		case err != nil:
			return err
		default:
			r.others = append(r.others, other)
		}
	}
	return nil
}

// sums reads the entries that the segments o and s have in common, from o.
func (a *Archive) sums(ctx context.Context, o, s *segment) (overlap, error) {
	is := overlap{first: max(o.first, s.first)}
	open, err := a.openSegment(ctx, o)
	for err == nil {
		var e cluster.LogEntry
		if err = open.read(&e); err == nil && e.Index >= is.first && e.Index <= s.last {
			is.entries = append(is.entries, sumOf(&e))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return is, err
}

// compare refuses an entry of the open segment if another segment has another one under its index, and one of
// the two was appended by the moment.
func (r *logReader) compare(e *cluster.LogEntry) error {
	for i := range r.others {
		o := &r.others[i]
		if e.Index < o.first || e.Index-o.first >= uint64(len(o.entries)) {
			continue
		}
		is, other := sumOf(e), &o.entries[e.Index-o.first]
		if is.sum == other.sum {
			continue
		}
		if other.at.Before(is.at) {
			is.at = other.at
		}
		if !is.at.After(r.at) {
			return fmt.Errorf("%w: the archive has two histories of shard %d from entry %d on, since data was put back to an earlier state: choose a moment before %s, or one behind a later backup", ErrOutOfReach,
				r.file.Shard, e.Index, is.at.UTC().Format(time.RFC3339Nano))
		}
	}
	return nil
}
