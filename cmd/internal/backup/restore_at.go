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
		span, err := logs.span(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if !span.To.Before(r.At) {
			return m, logs, nil
		}
		if span.To.After(latest.To) {
			latest = span
		}
	}
	return nil, nil, errors.Join(r.outOfReach(first, latest), unread)
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
func (r *Restoring) replay(ctx context.Context, f *cluster.Creation, file *File, chain []segment) (is replayed, err error) {
	var open *openedSegment
	next := func(e *cluster.LogEntry) error {
		for {
			if open == nil {
				if len(chain) == 0 {
					return io.EOF
				}
				if open, err = r.From.openSegment(ctx, &chain[0]); err != nil {
					return err
				}
				chain = chain[1:]
			}
			err := open.read(e)
			switch {
			case errors.Is(err, io.EOF):
				if err := f.Raise(open.format); err != nil {
					return err
				}
				open = nil
				continue
			case err != nil:
				return err
			case e.Index > file.Index && e.AppendedAt.After(r.At):
				is.late, err = r.finish(f, open)
				if chain, open = nil, nil; err == nil {
					err = io.EOF
				}
				return err
			}
			return nil
		}
	}
	is.index, is.epoch, is.entries, err = f.Replay(ctx, storage.Shard(file.Shard), next)
	return is, err
}

// finish reads the rest of the segment in which the moment is: the entries that were applied may be
// in the format that its end tells. It returns how many entries there are before the moment by the
// clock that appended them.
func (r *Restoring) finish(f *cluster.Creation, open *openedSegment) (late int64, err error) {
	var e cluster.LogEntry
	for {
		err := open.read(&e)
		switch {
		case errors.Is(err, io.EOF):
			return late, f.Raise(open.format)
		case err != nil:
			return 0, err
		case e.Command && !e.AppendedAt.After(r.At):
			late++
		}
	}
}
