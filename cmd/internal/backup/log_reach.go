package backup

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// logs are the archived logs of clusters, as a listing of the archive tells them.
type logs struct {
	archive  *Archive
	segments map[logOf][]segment // by the first entry
	marks    map[string][]mark   // by cluster, when they have been read
}

// logOf names the log of a shard.
type logOf struct {
	cluster string
	shard   int
}

// listLogs lists the segments in the archive.
func (a *Archive) listLogs(ctx context.Context) (*logs, error) {
	all, err := a.segments(ctx)
	if err != nil {
		return nil, err
	}
	l := &logs{archive: a, segments: map[logOf][]segment{}, marks: map[string][]mark{}}
	for _, s := range all {
		of := logOf{s.cluster, s.shard}
		l.segments[of] = append(l.segments[of], s)
	}
	for _, some := range l.segments {
		slices.SortStableFunc(some, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	}
	return l, nil
}

// chain returns the segments of a log that go on behind an entry without a gap, and the last entry
// that they have. Segments of two owners may overlap: an entry is the same in both.
func (l *logs) chain(of logOf, after uint64) (chain []segment, last uint64) {
	last = after
	all := l.segments[of]
	for i := 0; i < len(all); {
		var best *segment
		for ; i < len(all) && all[i].first <= last+1; i++ {
			if s := &all[i]; s.last > last && (best == nil || s.last > best.last) {
				best = s
			}
		}
		if best == nil {
			break
		}
		chain, last = append(chain, *best), best.last
	}
	return chain, last
}

// reach returns the latest moment to which the log of every shard leads from a backup: all writes
// that were acknowledged before are in the images or the segments.
func (l *logs) reach(ctx context.Context, m *Manifest) (time.Time, error) {
	marks, ok := l.marks[m.ClusterID]
	if !ok {
		var err error
		if marks, _, err = l.archive.marks(ctx, m.ClusterID); err != nil {
			return time.Time{}, err
		}
		l.marks[m.ClusterID] = marks
	}
	var reach time.Time
	for i := range m.Files {
		f := &m.Files[i]
		of := logOf{m.ClusterID, f.Shard}
		until := m.Moment
		_, last := l.chain(of, f.Index)
		later := func(at time.Time, end uint64) {
			if end <= last && at.After(until) {
				until = at
			}
		}
		for i := range l.segments[of] {
			later(l.segments[of][i].until, l.segments[of][i].last)
		}
		for i := range marks {
			for _, log := range marks[i].Logs {
				if log.Shard == f.Shard {
					later(log.At, log.Last)
					later(log.LostAt, log.Lost)
				}
			}
		}
		if i == 0 || until.Before(reach) {
			reach = until
		}
	}
	return reach, nil
}

// Span is the time between two moments, to each of which a backup can be restored.
type Span struct{ From, To time.Time }

// Any reports whether there is such a moment.
func (s Span) Any() bool { return !s.To.Before(s.From) }

// span returns the moments to which a backup can be restored with the logs.
func (l *logs) span(ctx context.Context, m *Manifest) (Span, error) {
	to, err := l.reach(ctx, m)
	return Span{m.Ended, to}, err
}

// Spans returns, for each backup, the moments to which it can be restored.
func (a *Archive) Spans(ctx context.Context, all []*Manifest) ([]Span, error) {
	l, err := a.listLogs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Span
	for _, m := range all {
		s, err := l.span(ctx, m)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
