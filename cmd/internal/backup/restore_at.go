package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/storage"
)

// ErrOutOfReach is the error of a restore to a moment to which no backup and its logs lead.
var ErrOutOfReach = errors.New("this moment can't be restored")

// clockStep is how far the clocks of owners may differ, as the cluster has it. A larger step back in the
// times of a log is that of a clock that was set.
const clockStep = 10 * time.Second

// setBack refuses a moment that a clock has shown twice: it was set back from the time upper to one that
// is not after lower.
func setBack(at, lower, upper time.Time) error {
	return fmt.Errorf("%w: %s is between %s and %s, and a clock that was set back has shown these times twice: choose a moment before or after them", ErrOutOfReach,
		at.Format(time.RFC3339Nano), lower.UTC().Format(time.RFC3339Nano), upper.UTC().Format(time.RFC3339Nano))
}

// choose returns the backup to restore, and the archived logs if they are needed. later are the names of
// backups that are of an older state although their times are later.
func (r *Restoring) choose(ctx context.Context) (m *Manifest, logs *logs, later []string, err error) {
	if r.Backup != "" {
		m, err = r.From.Open(ctx, r.Backup)
		if err != nil || r.At.IsZero() {
			return m, nil, nil, err
		}
		m, logs, err = r.chooseAt(ctx, []held{{name: r.Backup, m: m}})
		return m, logs, nil, err
	}
	all, err := r.From.all(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if r.At.IsZero() {
		h, later, err := r.From.newest(all, r.Now())
		if err != nil {
			return nil, nil, nil, err
		}
		return h.m, nil, later, nil
	}
	m, logs, err = r.chooseAt(ctx, all)
	return m, logs, nil, err
}

// chooseAt returns the newest of the backups that was complete at the moment, and whose logs lead there.
// The backups are in order.
func (r *Restoring) chooseAt(ctx context.Context, all []held) (*Manifest, *logs, error) {
	logs, err := r.From.listLogs(ctx)
	if err != nil {
		return nil, nil, err
	}
	var (
		unread error
		latest Span // of the backup that leads furthest of those before the moment
		first  *Manifest
		later  bool // a backup was taken after the moment by the times of its entries
	)
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i].m
		if m == nil {
			unread = errors.Join(unread, all[i].err)
			continue
		}
		if first == nil || m.Ended.Before(first.Ended) {
			first = m
		}
		if m.Ended.After(r.At) {
			continue // its images may have later writes
		}
		if logs.imagesLater(m, r.At) {
			later = true
			continue
		}
		span, err := logs.span(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if !span.To.Before(r.At) {
			if err := logs.setBack(ctx, m, r.At); err != nil {
				return nil, nil, err
			}
			return m, logs, nil
		}
		if span.To.After(latest.To) {
			latest = span
		}
	}
	if later && latest.To.IsZero() {
		return nil, nil, errors.Join(r.takenLater(), unread, logs.unread)
	}
	return nil, nil, errors.Join(r.outOfReach(first, latest), unread, logs.unread)
}

// outOfReach says which moments can be restored. first is the first backup, and latest the moments
// of the backup before At that leads furthest.
func (r *Restoring) outOfReach(first *Manifest, latest Span) error {
	at := r.At.Format(time.RFC3339Nano)
	switch {
	case first == nil:
		return fmt.Errorf("%w: there is no complete backup in %s", ErrOutOfReach, r.From)
	case latest.To.IsZero():
		return fmt.Errorf("%w: no backup in %s was complete by %s; the first one was at %s", ErrOutOfReach, r.From, at, first.Ended.Format(time.RFC3339Nano))
	case latest.Any():
		return fmt.Errorf("%w: the archived logs in %s do not lead to %s; the latest moment before it is %s", ErrOutOfReach, r.From, at, latest.To.Format(time.RFC3339Nano))
	}
	return fmt.Errorf("%w: no logs are archived in %s that go on behind the backup of %s, which can be restored without --at", ErrOutOfReach, r.From, latest.From.Format(time.RFC3339Nano))
}

// takenLater refuses a backup whose images have entries that were appended after the moment.
func (r *Restoring) takenLater() error {
	return fmt.Errorf("%w: the backup has entries that were appended after %s, so the clock of the machine that took it was behind: choose a later moment, or an earlier backup with --backup", ErrOutOfReach,
		r.At.Format(time.RFC3339Nano))
}

// agreement returns how directory and workspaces are made to agree. In a backup the directory comes
// last. At a moment by the clocks of several owners it may be the older one by what the clocks
// differ, so a workspace that it does not know is kept.
func (r *Restoring) agreement() agreement {
	if r.At.IsZero() {
		return tracker.Restored
	}
	return tracker.Recovered
}

// replayed is what was applied to the image of a shard.
type replayed struct {
	index, epoch uint64 // where the shard is then
	entries      int64
	late         int64 // see Restored
}

// replay applies the archived log of a shard to the rows of its image, up to the first entry that
// was appended after the moment.
func (r *Restoring) replay(ctx context.Context, f *cluster.Creation, log *logReader) (is replayed, err error) {
	var open *openedSegment
	image := log.file.Index
	next := func(e *cluster.LogEntry) error {
		for {
			if open == nil {
				if open, err = log.next(ctx); err != nil {
					return err
				}
				if err := log.overlaps(ctx, &open.segment); err != nil {
					return err
				}
			}
			err := open.read(e)
			if err == nil {
				err = log.compare(e)
			}
			switch {
			case errors.Is(err, io.EOF):
				if err := f.Raise(open.format); err != nil {
					return err
				}
				open = nil
				continue
			case err != nil:
				return err
			case e.Index == image && e.AppendedAt.After(r.At.Add(clockStep)):
				return r.takenLater()
			case e.Index > image && e.AppendedAt.After(r.At):
				is.late, err = r.finish(ctx, f, e, open, log)
				if open, log.chain = nil, nil; err == nil {
					err = io.EOF
				}
				return err
			}
			return nil
		}
	}
	is.index, is.epoch, is.entries, err = f.Replay(ctx, storage.Shard(log.file.Shard), next)
	return is, err
}

// finish reads what is behind stop, the first entry that was appended after the moment: the rest of its
// segment, and the later segments of the chain that begin or end before the moment by their times. The
// entries that were applied may be in the format that the end of the first one tells. It returns how many
// entries there are before the moment by the clock that appended them. Where that clock was set back the
// moment stands for two places in the log, which is an error.
func (r *Restoring) finish(ctx context.Context, f *cluster.Creation, stop *cluster.LogEntry, open *openedSegment, log *logReader) (late int64, err error) {
	last, latest := stop.Index, stop.AppendedAt
	applied := open // in part
	for {
		var e cluster.LogEntry
		err := open.read(&e)
		switch {
		case errors.Is(err, io.EOF):
			if open == applied {
				if err := f.Raise(open.format); err != nil {
					return 0, err
				}
			}
			for len(log.chain) > 0 && log.chain[0].from.After(r.At) && log.chain[0].until.After(r.At) {
				log.chain = log.chain[1:]
			}
			open, err = log.next(ctx)
			if errors.Is(err, io.EOF) {
				return late, nil
			}
			if err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		case e.Index <= last: // segments of two owners overlap
		case e.AppendedAt.After(latest):
			latest = e.AppendedAt
		case e.Command && !e.AppendedAt.IsZero() && !e.AppendedAt.After(r.At):
			if late++; latest.Sub(e.AppendedAt) > clockStep {
				return 0, setBack(r.At, e.AppendedAt, latest)
			}
		}
	}
}
