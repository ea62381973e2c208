package backup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// logs are the archived logs of clusters, as a listing of the archive tells them.
type logs struct {
	archive  *Archive
	segments map[logOf][]segment // by the first entry
	marks    map[string][]mark   // by cluster, when they have been read
	unread   error               // of marks
	damaged  []error             // of segments
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

// reach returns the latest moment to which the log of every shard leads from a backup: all writes
// that were acknowledged before are in the images or the segments. Of each shard the claim about the most
// entries counts, not the one of the latest time: a clock may have been set back since.
func (l *logs) reach(ctx context.Context, m *Manifest) (time.Time, error) {
	if _, ok := l.marks[m.ClusterID]; !ok {
		marks, unread, err := l.archive.marks(ctx, m.ClusterID)
		if err != nil {
			return time.Time{}, err
		}
		l.marks[m.ClusterID], l.unread = marks, errors.Join(l.unread, unread)
	}
	var reach time.Time
	for i := range m.Files {
		until, err := l.until(ctx, m, &m.Files[i])
		if err != nil {
			return time.Time{}, err
		}
		if i == 0 || until.Before(reach) {
			reach = until
		}
	}
	return reach, nil
}

// until is reach of one shard, with the marks that reach has read.
func (l *logs) until(ctx context.Context, m *Manifest, f *File) (time.Time, error) {
	of, marks := logOf{m.ClusterID, f.Shard}, l.marks[m.ClusterID]
	_, last, err := l.chain(ctx, of, f.Index)
	if err != nil {
		return time.Time{}, err
	}
	all := l.segments[of]
	best := archivedLog{Last: f.Index, At: m.Moment}
	for i := range all {
		if s := (archivedLog{Last: all[i].last, At: all[i].until}); s.Last <= last && s.newer(&best) {
			best = s
		}
	}
	var marked *archivedLog
	for i := range marks {
		for _, log := range marks[i].Logs {
			for _, c := range []archivedLog{log, {Last: log.Lost, At: log.LostAt, Pass: log.Pass}} {
				if log.Shard == f.Shard && !c.At.IsZero() && c.Last <= last && (marked == nil || c.newer(marked)) {
					marked = &c
				}
			}
		}
	}
	if marked != nil && marked.Last >= best.Last { // marks are written behind the segments
		best = *marked
	}
	for i := range all { // behind a gap
		if all[i].first > best.Last && all[i].from.Before(best.At) {
			best.At = all[i].from
		}
	}
	return best.At, nil
}

// setBack returns an error if the names of the segments say that a clock was set back from a time after
// the moment to one before it, behind the images of a backup. Not all such steps are between segments.
func (l *logs) setBack(ctx context.Context, m *Manifest, at time.Time) error {
	for i := range m.Files {
		f := &m.Files[i]
		chain, _, err := l.chain(ctx, logOf{m.ClusterID, f.Shard}, f.Index)
		if err != nil {
			return err
		}
		latest := at
		for j := range chain {
			switch from := chain[j].from; {
			case chain[j].first <= f.Index:
			case from.After(latest):
				latest = from
			case !from.After(at) && latest.Sub(from) > clockStep && latest.After(at):
				return setBack(at, from, latest)
			}
		}
	}
	return nil
}

// imagesLater reports whether the images of a backup have entries that were appended after a moment: the
// clock of the machine that took the backup was behind. The names of the segments do not always show it.
func (l *logs) imagesLater(m *Manifest, at time.Time) bool {
	for i := range m.Files {
		f := &m.Files[i]
		var last time.Time // when the segment began that has the last entry of the image
		for _, s := range l.segments[logOf{m.ClusterID, f.Shard}] {
			if s.first <= f.Index && s.last >= f.Index {
				last = s.from
			}
		}
		if last.After(at.Add(clockStep)) {
			return true
		}
	}
	return false
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
