package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"sync"
	"time"
)

// Schedule takes backups of a cluster again and again. It runs on every node of the cluster,
// over one archive that all of them reach, and one node at a time takes the backups. What the
// archive holds says when the next one is due, after a fail-over, a restart or a backup by hand,
// too: when the newest in the archive is old enough. Where the archive has no backup any more, none
// is taken.
type Schedule struct {
	To    *Archive
	Every time.Duration // between the beginnings of two backups
	// Cluster returns the id of the cluster.
	Cluster func() string
	// Leads reports whether this node is the one that takes the backups now. The channel is
	// closed when that may have changed; nil: it never does.
	Leads func() (leads bool, changed <-chan struct{})
	// Take takes a backup. Its progress is told, so that it ends when another node leads.
	Take func(ctx context.Context, progress func(Progress)) (name string, m *Manifest, err error)
	// Complete is called after each backup that this node has taken; it may be nil, and must not block.
	Complete func()
	// SeenIn is a file on this node's own disk, which keeps over restarts that there were backups in
	// the archive; empty: nothing does.
	SeenIn string
	Now    func() time.Time
	Logger *slog.Logger

	mu     sync.Mutex
	status Status // guarded by mu
	// newest is the backup that status names; nil: none. Guarded by mu.
	newest *Manifest
	// refused is set while nothing may be written to the archive. Guarded by mu.
	refused error

	seen seen // owned by Run, and by Take while that runs
	// tries counts the failures in a row since this node leads. Owned by Run.
	tries int
}

// Status is what a node knows of the backups of its cluster.
type Status struct {
	// Known is set once the node has looked into the archive.
	Known bool
	// Name and Moment are those of the newest backup that is complete; empty: there is none.
	Name   string
	Moment time.Time
	// Taken and Failed count the backups that this node has begun and that have ended.
	Taken, Failed uint64
	// Failures are those since the last success of this node, and Error says why the last one
	// failed.
	Failures int
	Error    string
}

// Age is how old the newest backup is: a write that was acknowledged before is in it. Without
// a backup it is infinite.
func (s *Status) Age(now time.Time) float64 {
	if s.Name == "" {
		return math.Inf(1)
	}
	return max(0, now.Sub(s.Moment).Seconds())
}

const (
	// lookEvery is the longest time between two looks into the archive.
	lookEvery = time.Minute
	// settle is the pause after another node may have become the one that takes the backups.
	settle = time.Second
	// firstRetry is the pause after a failure; it doubles with each further one of the same lead up to
	// longestRetry, or to the interval of the schedule if that is shorter.
	firstRetry   = 30 * time.Second
	longestRetry = 30 * time.Minute
	// skew is how far the clocks of nodes may differ: backups of later moments don't count.
	skew = 10 * time.Minute
	// lookBack is how many backups are read to find one of this cluster that can be read.
	lookBack = 16
)

// errNotLeading ends a backup that another node takes, or has taken.
var errNotLeading = errors.New("another node takes the backups now")

// Status returns what this node knows.
func (s *Schedule) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Newest returns the manifest of the newest backup, which is not changed; nil: there is none. It
// returns false while the node has not looked into the archive, and while nothing may be written to it.
func (s *Schedule) Newest() (*Manifest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest, s.status.Known && s.refused == nil
}

// Refused returns why nothing may be written to the archive; nil: it may.
func (s *Schedule) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Run takes backups until ctx ends. It returns when the one that is being taken has ended, too.
func (s *Schedule) Run(ctx context.Context) {
	s.seen.file = s.SeenIn
	wait := time.NewTimer(0)
	defer wait.Stop()
	var changed <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			changed, s.tries = nil, 0
			wait.Reset(settle)
		case <-wait.C:
			_, changed = s.Leads()
			wait.Reset(s.step(ctx))
		}
	}
}

func (s *Schedule) leads() bool {
	leads, _ := s.Leads()
	return leads
}

// step takes a backup if one is due, and returns how long to wait before the next step.
func (s *Schedule) step(ctx context.Context) time.Duration {
	err := s.look(ctx)
	switch due := s.due(); {
	case ctx.Err() != nil:
		return 0
	case !s.leads():
		s.tries = 0
		if err != nil {
			s.Logger.Warn("the backups can't be listed", "in", s.To.String(), "error", err)
		}
		return min(lookEvery, s.Every)
	case err == nil && due > 0:
		return min(lookEvery, due)
	case err == nil:
		err = s.take(ctx)
	}
	if ctx.Err() != nil || errors.Is(err, errNotLeading) {
		return settle // nothing has failed
	}
	s.note(err)
	if err != nil {
		s.tries++
		pause := s.retry()
		// While the backups are gone no logs are archived either. And the backup of another node that writes there
		// ends at a time of its own: that of a node that led before, and hangs, may end hours later.
		if errors.Is(err, errEmptied) || errors.Is(err, errLocked) {
			pause = min(lookEvery, s.Every)
		}
		s.Logger.Error("the scheduled backup failed", "to", s.To.String(), "error", err, "again", pause)
		return pause
	}
	s.tries = 0
	return 0
}

// due returns the time until the next backup is due; 0 or less: now.
func (s *Schedule) due() time.Duration {
	status := s.Status()
	if status.Name == "" {
		return 0
	}
	return status.Moment.Add(s.Every).Sub(s.Now())
}

func (s *Schedule) retry() time.Duration {
	return min(s.Every, longestRetry, firstRetry<<min(max(0, s.tries-1), 10))
}

// look finds the newest backup of the cluster.
func (s *Schedule) look(ctx context.Context) error {
	names, err := s.To.List(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failed, err := s.seen.check(seenAs(s.To), len(names))
	if failed != nil {
		s.Logger.Warn("it will not be known after a restart that the archive has backups", "in", s.To.String(), "error", failed)
	}
	s.mu.Lock()
	s.refused = err
	s.status.Known = s.status.Known || err != nil // without a backup
	before, newest := s.status, s.newest
	s.mu.Unlock()
	if err != nil {
		return err
	}
	found := Status{}
	var unread error
	names = untilNow(names, s.Now())
	for n := len(names) - 1; n >= max(0, len(names)-lookBack); n-- {
		name := names[n]
		if name == before.Name {
			found = before
			break
		}
		m, err := s.To.Open(ctx, name)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		if m.ClusterID == s.Cluster() {
			found.Name, found.Moment, newest = name, m.Moment, m
			break
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unread != nil && found.Name != before.Name {
		s.Logger.Warn("backups can't be read", "in", s.To.String(), "error", unread)
	}
	if found.Name == "" {
		newest = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Known, s.status.Name, s.status.Moment, s.newest = true, found.Name, found.Moment, newest
	return nil
}

// untilNow returns the backups whose times are not in the future, of names that are sorted.
func untilNow(names []string, now time.Time) []string {
	for len(names) > 0 {
		if moment, _, _ := momentOf(names[len(names)-1]); !moment.After(now.Add(skew)) {
			break
		}
		names = names[:len(names)-1]
	}
	return names
}

// take takes one backup, as long as this node leads.
func (s *Schedule) take(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := s.Now()
	s.Logger.Info("a backup begins", "to", s.To.String())
	looked := false
	name, m, err := s.Take(ctx, func(Progress) {
		switch {
		case !s.leads():
			cancel(errNotLeading)
		case !looked:
			// The node that led before may have completed one just before this node had the lock.
			looked = true
			if err := s.look(ctx); errors.Is(err, errEmptied) {
				cancel(err)
			} else if err == nil && s.due() > 0 {
				cancel(errNotLeading)
			}
		}
	})
	var left *PruneError
	if errors.As(err, &left) {
		s.Logger.Warn("old backups could not be removed", "in", s.To.String(), "error", left.err)
		err = nil
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	s.mu.Lock()
	s.status.Name, s.status.Moment, s.newest = name, m.Moment, m
	s.mu.Unlock()
	if s.Complete != nil {
		s.Complete()
	}
	s.Logger.Info("a backup is complete", "to", s.To.String(), "name", name, "bytes", m.Bytes(), "took", s.Now().Sub(began).Round(time.Millisecond))
	return nil
}

// note counts the end of a try.
func (s *Schedule) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.status.Taken++
		s.status.Failures, s.status.Error = 0, ""
		return
	}
	s.status.Failed++
	s.status.Failures++
	s.status.Error = err.Error()
}
