package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"switchyard/cluster"
	"switchyard/storage"
)

// Logs are the logs of the cluster's shards on one node.
type Logs interface {
	ClusterID() string
	// Shards is the number of workspace shards.
	Shards() int
	Format() storage.Format
	// Owns reports whether this node owns a shard.
	Owns(shard storage.Shard) bool
	// Reach returns the last applied entry of a shard that this node owns, and the first one in its
	// log (0: there is none), once it is certain that every write acknowledged before is applied.
	Reach(shard storage.Shard, deadline time.Time) (first, applied uint64, err error)
	ReadLog(shard storage.Shard, after uint64, fn func(*cluster.LogEntry) (more bool, err error)) (uint64, error)
	// KeepLog has entries behind the index after stay in the log of this node for a time.
	KeepLog(shard storage.Shard, after uint64, period time.Duration)
}

// LogArchiver copies the logs of shards into an archive between backups, so that a restore can reach
// moments between them. It runs on every node: the owner of a shard archives it, so that no node
// has to read, or send, what another one has on its disk. Segments and marks in the archive are all
// that a node needs to go on where another one has stopped.
type LogArchiver struct {
	To    *Archive
	Every time.Duration // between the beginnings of two passes
	Node  string        // name of this node
	Logs  Logs
	// Newest returns the manifest of the newest backup of the cluster (nil: there is none); false
	// while it is not known.
	Newest func() (*Manifest, bool)
	// Refused returns why nothing may be written to the archive now; nil: it may. The function may be nil.
	Refused func() error
	// Kept gets a value when a log grows that is kept for the archive, and Taken when a backup is
	// complete, which leads nowhere yet: the next pass does not wait then. Either may be nil.
	Kept, Taken <-chan struct{}
	Now         func() time.Time
	Logger      *slog.Logger

	// The fields up to mu are owned by Run.

	known map[int]archivedLog // by shard
	// left is the last archived entry of a history that the cluster does not go on from, by shard.
	left map[int]uint64
	// marked is the text of this node's mark as it was written last (empty: not since the start), and marking
	// the text of the last try, which may have failed halfway.
	marked, marking string
	// unbegun is set if this node's file in the folder of segments is missing.
	unbegun bool
	// doubted is set until a pass succeeds after the archive was found changed.
	doubted bool
	foreign time.Time // since when the place has nothing that this node has archived; zero: it has

	mu     sync.Mutex
	status LogStatus // guarded by mu
}

const (
	// logRetry is the longest pause after a pass that failed.
	logRetry = 30 * time.Second
	// logKept is how long logs are kept at least after the last try of a pass.
	logKept = 10 * time.Minute
	// newestTries is how many passes wait for the newest backup to be known before that is a failure.
	newestTries = 5
	// reachWithin bounds the wait for the certainty that this node owns a shard.
	reachWithin = 5 * time.Second
)

// errNoNewest ends a pass while it is not known which backup is the newest.
var errNoNewest = errors.New("the backups have not been looked at yet")

// Run archives the logs until ctx ends. It returns when the pass under way has ended, too.
func (a *LogArchiver) Run(ctx context.Context) {
	a.known, a.left = map[int]archivedLog{}, map[int]uint64{}
	wait := time.NewTimer(0)
	defer wait.Stop()
	for unknown := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-a.Kept:
		case <-a.Taken:
		case <-wait.C:
		}
		began := a.Now()
		err := a.pass(ctx)
		if unknown++; !errors.Is(err, errNoNewest) {
			unknown = 0
		}
		switch {
		case ctx.Err() != nil:
			return
		case unknown > 0 && unknown < newestTries:
			wait.Reset(min(settle, a.Every))
			continue
		case err != nil:
			a.Logger.Error("the logs could not be archived", "to", a.To.String(), "error", err)
			wait.Reset(min(logRetry, a.Every))
		default:
			wait.Reset(max(0, a.Every-a.Now().Sub(began)))
		}
		a.note(err)
	}
}

// pass archives the logs of all shards that this node owns.
func (a *LogArchiver) pass(ctx context.Context) error {
	a.keep()
	if a.Refused != nil {
		if err := a.Refused(); err != nil {
			return err
		}
	}
	newest, ok := a.Newest()
	if !ok {
		return errNoNewest
	}
	owned := a.owned()
	if err := a.learn(ctx, newest, owned); err != nil {
		return err
	}
	a.keep()
	var failed error
	for shard := range a.Logs.Shards() + 1 {
		if !owned[shard] || !a.Logs.Owns(storage.Shard(shard)) {
			continue
		}
		err := a.shard(ctx, shard, newest)
		var place *placeError
		if errors.As(err, &place) || ctx.Err() != nil {
			return err // the other shards would fare no better
		}
		failed = errors.Join(failed, err)
	}
	if len(owned) > 0 {
		failed = errors.Join(failed, a.mark(ctx))
	}
	if failed == nil {
		a.doubted = false
	}
	return failed
}

// owned returns the shards that this node owns.
func (a *LogArchiver) owned() map[int]bool {
	owned := map[int]bool{}
	for shard := range a.Logs.Shards() + 1 {
		if a.Logs.Owns(storage.Shard(shard)) {
			owned[shard] = true
		}
	}
	return owned
}

// placeError is the error of a write to the archive.
type placeError struct{ err error }

func (e *placeError) Error() string { return e.err.Error() }
func (e *placeError) Unwrap() error { return e.err }

// keep has this node keep what is not in the archive, as the owner or for the time when it may
// become the owner. As long as the archive can't be reached after a start, that is all of a log.
func (a *LogArchiver) keep() {
	for shard := range a.Logs.Shards() + 1 {
		a.Logs.KeepLog(storage.Shard(shard), a.known[shard].Last, max(logKept, 3*a.Every))
	}
}

// shard archives the log of a shard up to now.
func (a *LogArchiver) shard(ctx context.Context, shard int, newest *Manifest) error {
	now := a.Now()
	for try := 0; ; try++ {
		first, applied, err := a.Logs.Reach(storage.Shard(shard), now.Add(reachWithin))
		if err != nil {
			if !a.Logs.Owns(storage.Shard(shard)) {
				return nil // another node goes on
			}
			return fmt.Errorf("archive the log of shard %d: %w", shard, err)
		}
		log := a.begin(shard, first, applied, newest)
		for log.Last < applied {
			if log, err = a.segment(ctx, log, applied, now); err != nil {
				break
			}
			a.known[shard] = log
		}
		if errors.Is(err, cluster.ErrLogTruncated) && try == 0 {
			continue // since it was looked at: there is a gap now
		}
		if err != nil {
			return fmt.Errorf("archive the log of shard %d: %w", shard, err)
		}
		log.At, log.Pass = now, log.Pass+1
		a.known[shard] = log
		a.Logs.KeepLog(storage.Shard(shard), log.Last, max(logKept, 3*a.Every))
		return nil
	}
}

// begin returns where the archive of a log goes on, with a gap if the log does not reach back.
func (a *LogArchiver) begin(shard int, first, applied uint64, newest *Manifest) archivedLog {
	log, ok := a.known[shard]
	image := newest.file(shard)
	if first == 0 || first > applied { // no applied entry is left in the log
		first = applied + 1
	}
	if ok && log.Last <= applied && first <= log.Last+1 {
		return log
	}
	from := archivedLog{Shard: shard, After: first - 1, Pass: log.Pass}
	switch {
	case ok && log.Last > applied:
		a.putBack(shard, log.Last, applied)
	case image == nil: // the first backup will have what was truncated
	case image.Index <= applied && first <= image.Index+1:
		from.After = image.Index // the image has it
	default:
		from.Lost, from.LostAt = log.Last, log.At
		a.gap(shard, max(log.Last, image.Index), from.After)
	}
	from.Last = from.After
	a.known[shard] = from
	return from
}

// putBack tells of archived entries that no node has any more, since data was put back to an earlier
// state. All of the log is archived again, so that a restore finds the first entry that differs.
func (a *LogArchiver) putBack(shard int, last, applied uint64) {
	a.left[shard] = last
	a.Logger.Error("the archive has later entries of a log than the cluster, whose data was put back to an earlier state: until the next backups are complete, no later moment can be restored",
		"shard", shard, "archived", last, "applied", applied)
	a.mu.Lock()
	a.status.Lost++
	a.mu.Unlock()
}

// gap tells of entries that were truncated before they were archived.
func (a *LogArchiver) gap(shard int, last, after uint64) {
	a.Logger.Error("entries of a log were truncated before they were archived: until the next backup is complete, no later moment can be restored",
		"shard", shard, "archived", last, "goes_on_behind", after)
	a.mu.Lock()
	a.status.Lost++
	a.mu.Unlock()
}

// segment archives the next entries of a log, up to applied at most.
func (a *LogArchiver) segment(ctx context.Context, log archivedLog, applied uint64, now time.Time) (_ archivedLog, err error) {
	var draft *segmentDraft
	defer func() {
		if draft != nil {
			err = errors.Join(err, draft.discard())
		}
	}()
	last, err := a.Logs.ReadLog(storage.Shard(log.Shard), log.Last, func(e *cluster.LogEntry) (bool, error) {
		if draft == nil {
			var err error
			if draft, err = a.To.createSegment(a.Logs.ClusterID(), log.Shard, e.Index); err != nil {
				return false, &placeError{err}
			}
		}
		if err := draft.add(e); err != nil {
			return false, err
		}
		return e.Index < applied && draft.size < segmentBytes && ctx.Err() == nil, nil
	})
	switch {
	case err != nil:
		return log, err
	case ctx.Err() != nil:
		return log, context.Cause(ctx)
	case draft == nil:
		return log, fmt.Errorf("%w: no entry behind %d", cluster.ErrLogTruncated, log.Last)
	}
	until := now
	if last < applied && draft.latest.Before(now) {
		until = draft.latest
	}
	size, err := draft.keep(ctx, until, a.Logs.Format())
	if err != nil {
		return log, &placeError{err}
	}
	log.Last, log.At = last, until
	a.mu.Lock()
	a.status.Segments++
	a.status.Bytes += uint64(size)
	a.mu.Unlock()
	return log, nil
}
