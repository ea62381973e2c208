package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// chain returns the segments of a log that go on behind an entry without a gap, and the last entry
// that they have. Segments of two owners may overlap: an entry is the same in both. After a change of the
// key those of the old one overlap with those of the new one, which a restore can't read.
func (l *logs) chain(ctx context.Context, of logOf, after uint64) (chain []segment, last uint64, err error) {
	last = after
	all := l.segments[of]
	for i := 0; i < len(all); {
		var best *segment
		usable, next := 0, i
		for ; next < len(all) && all[next].first <= last+1; next++ {
			s := &all[next]
			if s.unusable || s.last <= last {
				continue
			}
			if usable++; best == nil || s.last > best.last {
				best = s
			}
		}
		if best == nil {
			break
		}
		if usable > 1 || len(chain) > 0 && best.first <= last {
			if err := l.try(ctx, best); err != nil {
				return nil, 0, err
			}
			if best.unusable {
				continue
			}
		}
		chain, last, i = append(chain, *best), best.last, next
	}
	return chain, last, nil
}

// try notes whether the key of the archive is that of a segment. The head of the file tells. What else
// may be wrong with it is found when it is opened.
func (l *logs) try(ctx context.Context, s *segment) error {
	if !s.sealed || s.ours {
		return nil
	}
	in, err := l.archive.place.Open(ctx, s.name())
	if err != nil {
		return fmt.Errorf("read %s: %w", s.name(), err)
	}
	defer func() { _ = in.Close() }()
	from := &source{r: in, ctx: ctx}
	_, err = l.archive.unsealed(from)
	if from.failed != nil {
		return fmt.Errorf("read %s: %w", s.name(), from.failed)
	}
	s.unusable = errors.Is(err, errOtherKey)
	s.ours = !s.unusable
	return nil
}

// logReader reads the archived log of a shard behind its image, up to a moment.
type logReader struct {
	logs  *logs
	m     *Manifest
	file  *File
	at    time.Time
	chain []segment // that are still to be read
	last  uint64    // last entry of those that were read
	// opened are the names of those that were read, and others has entries of further segments.
	opened map[string]bool
	others []overlap
}

// open begins to read the log of a shard.
func (l *logs) open(ctx context.Context, m *Manifest, file *File, at time.Time) (*logReader, error) {
	chain, _, err := l.chain(ctx, logOf{m.ClusterID, file.Shard}, file.Index)
	return &logReader{logs: l, m: m, file: file, at: at, chain: chain, last: file.Index, opened: map[string]bool{}}, err
}

// next opens the next segment; io.EOF: there is none. Where a segment is damaged, or of another key, others may
// lead to the moment without it.
func (r *logReader) next(ctx context.Context) (*openedSegment, error) {
	for len(r.chain) > 0 {
		s := r.chain[0]
		open, err := r.logs.archive.openSegment(ctx, &s)
		if err == nil {
			r.chain, r.last = r.chain[1:], s.last
			r.opened[s.name()] = true
			return open, nil
		}
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		r.logs.leaveOut(&s, err)
		until, failed := r.logs.until(ctx, r.m, r.file)
		if failed == nil && until.Before(r.at) {
			failed = err
		}
		if failed == nil {
			r.chain, _, failed = r.logs.chain(ctx, logOf{r.m.ClusterID, r.file.Shard}, r.last)
		}
		if failed != nil {
			return nil, failed
		}
	}
	return nil, io.EOF
}

// leaveOut has no chain lead over a segment that is damaged, or not for the key.
func (l *logs) leaveOut(s *segment, err error) {
	all := l.segments[logOf{s.cluster, s.shard}]
	for i := range all {
		if all[i].unusable || all[i].name() != s.name() {
			continue
		}
		if all[i].unusable = true; !errors.Is(err, errOtherKey) {
			l.damaged = append(l.damaged, err)
		}
	}
}
