package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// rehearsal is a cluster of two nodes with one schedule, whose backups take ten minutes.
type rehearsal struct {
	t       *testing.T
	dir     string
	data    string       // has the nodes' own files
	leader  atomic.Int32 // number of the node that takes backups
	failing atomic.Bool  // every backup fails
	mu      sync.Mutex
	began   []int // nodes, by backup begun
	nodes   [2]*Schedule
	stop    [2]context.CancelFunc
	ended   [2]chan struct{}
}

var errDisk = errors.New("the disk is gone")

func rehearse(t *testing.T, every time.Duration) *rehearsal {
	t.Helper()
	return rehearseLed(t, every, 0)
}

// rehearseLed starts two nodes, of which leader takes the backups.
func rehearseLed(t *testing.T, every time.Duration, leader int32) *rehearsal {
	t.Helper()
	r := &rehearsal{t: t, dir: filepath.Join(t.TempDir(), "backups"), data: t.TempDir()}
	r.leader.Store(leader)
	for n := range r.nodes {
		r.start(n, every)
	}
	t.Cleanup(func() {
		for n := range r.nodes {
			r.end(n)
		}
	})
	return r
}

func (r *rehearsal) start(n int, every time.Duration) {
	s := &Schedule{
		To: NewArchive(InDir(r.dir), nil), Every: every, SeenIn: filepath.Join(r.data, fmt.Sprint("seen-", n)), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Cluster: func() string { return "cluster" },
		Leads:   func() (bool, <-chan struct{}) { return r.leader.Load() == int32(n), nil },
	}
	s.Take = func(ctx context.Context, progress func(Progress)) (string, *Manifest, error) {
		r.mu.Lock()
		r.began = append(r.began, n)
		r.mu.Unlock()
		m := manifestOf("cluster", time.Now())
		for range 10 {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			if progress(Progress{}); ctx.Err() != nil {
				return "", nil, context.Cause(ctx)
			}
		}
		if r.failing.Load() {
			return "", nil, errDisk
		}
		return r.keep(ctx, s.To, m)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	r.nodes[n], r.stop[n], r.ended[n] = s, cancel, make(chan struct{})
	go func() {
		defer close(r.ended[n])
		s.Run(ctx)
	}()
}

func (r *rehearsal) end(n int) {
	r.stop[n]()
	<-r.ended[n]
}

func (r *rehearsal) keep(ctx context.Context, to *Archive, m *Manifest) (string, *Manifest, error) {
	unlock, err := to.place.Lock(ctx)
	if err != nil {
		return "", nil, err
	}
	name, err := (&taken{Taking: Taking{To: to}}).finish(ctx, m)
	return name, m, errors.Join(err, unlock())
}

func (r *rehearsal) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expect compares the backups in the archive, and those begun.
func (r *rehearsal) expect(when string, complete int, began ...int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	names, err := NewArchive(InDir(r.dir), nil).List(r.t.Context())
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(names) != complete || !slices.Equal(r.began, began) {
		r.t.Errorf("%s: %q are complete, %v began them, %v; want %d and %v", when, names, r.began, err, complete, began)
	}
}

func manifestOf(cluster string, moment time.Time) *Manifest {
	m := &Manifest{Version: Version, ClusterID: cluster, Shards: 1, Moment: moment.UTC().Truncate(time.Millisecond), Complete: true}
	for n := range 2 {
		m.Files = append(m.Files, File{Shard: n, Index: 1, Epoch: 1, Bytes: 1, SHA256: strings.Repeat("ab", 32)})
	}
	return m
}

func TestSchedule_OneBackupEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if status := new(Schedule).Status(); status.Known || status.Age(time.Now()) != math.Inf(1) {
			t.Errorf("%+v before the first look", status)
		}
		r := rehearse(t, 24*time.Hour)
		r.pass(11 * time.Minute)
		r.expect("at first", 1, 0)
		if status := r.nodes[1].Status(); !status.Known || status.Name == "" || status.Age(time.Now()) != (11*time.Minute).Seconds() || status.Taken != 0 {
			t.Errorf("the other node knows %+v", status)
		}
		r.pass(23*time.Hour + 48*time.Minute)
		r.expect("before the second", 1, 0)
		r.pass(12 * time.Minute)
		r.expect("after a day", 2, 0, 0)

		// Another node leads: it goes on where the first one was.
		r.leader.Store(1)
		r.pass(23 * time.Hour)
		r.expect("after the fail-over", 2, 0, 0)
		r.pass(time.Hour)
		r.expect("after two days", 3, 0, 0, 1)

		// The leader changes while a backup is taken: it breaks off, and is taken once.
		r.pass(24*time.Hour - 6*time.Minute)
		r.leader.Store(0)
		r.pass(15 * time.Minute)
		r.expect("after a fail-over in a backup", 4, 0, 0, 1, 1, 0)
		if status := r.nodes[1].Status(); status.Failed != 0 || status.Error != "" {
			t.Errorf("the node that leads no more has failed: %+v", status)
		}

		// A backup by hand counts, one of another cluster or of the future does not.
		r.pass(12 * time.Hour)
		to := r.nodes[0].To
		if _, _, err := r.keep(t.Context(), to, manifestOf("cluster", time.Now())); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Hour)
		for cluster, moment := range map[string]time.Time{"other": time.Now(), "cluster": time.Now().Add(240 * time.Hour)} {
			if _, _, err := r.keep(t.Context(), to, manifestOf(cluster, moment)); err != nil {
				t.Fatal(err)
			}
		}
		r.pass(22 * time.Hour)
		r.expect("after one by hand", 7, 0, 0, 1, 1, 0)
		r.pass(2 * time.Hour)
		r.expect("a day after it", 8, 0, 0, 1, 1, 0, 0)

		// Missed backups are made up for once.
		r.end(0)
		r.end(1)
		r.pass(100 * time.Hour)
		r.expect("while no node runs", 8, 0, 0, 1, 1, 0, 0)
		r.start(0, 24*time.Hour)
		r.start(1, 24*time.Hour)
		r.pass(23 * time.Hour)
		r.expect("a day later", 9, 0, 0, 1, 1, 0, 0, 0)
	})
}

// However many backups a wrong clock has put into the future, the newest one of the past is found.
func TestSchedule_AfterAWrongClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.pass(11 * time.Minute)
		for hour := range 2 * lookBack {
			if _, _, err := r.keep(t.Context(), r.nodes[0].To, manifestOf("cluster", time.Now().Add(240*time.Hour+time.Duration(hour)*time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		r.pass(12 * time.Hour)
		r.expect("half a day later", 1+2*lookBack, 0)
		if status := r.nodes[1].Status(); status.Age(time.Now()) < (12 * time.Hour).Seconds() {
			t.Errorf("the newest is of %s", status.Moment)
		}
		r.pass(12 * time.Hour)
		r.expect("a day later", 2+2*lookBack, 0, 0)
	})
}

// The file system of the backups is not mounted: none is taken into the directory below, also by a node that was
// restarted meanwhile.
func TestSchedule_TakesNoneWhereTheBackupsAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.pass(11 * time.Minute)
		r.expect("at first", 1, 0)
		gone := func(when string) {
			t.Helper()
			r.pass(25 * time.Hour)
			r.expect(when, 0, 0)
			for n, s := range r.nodes {
				if err := s.Refused(); !errors.Is(err, errEmptied) {
					t.Errorf("%s: node %d refuses for %v", when, n, err)
				}
				if _, ok := s.Newest(); ok {
					t.Errorf("%s: node %d knows the newest backup", when, n)
				}
			}
			if status := r.nodes[0].Status(); !status.Known || status.Failures == 0 || status.Error != errEmptied.Error() || status.Age(time.Now()) < (24*time.Hour).Seconds() {
				t.Errorf("%s: %+v", when, status)
			}
		}
		if err := os.Rename(r.dir, r.dir+".away"); err != nil {
			t.Fatal(err)
		}
		gone("without the directory")
		for n := range r.nodes {
			r.end(n)
			r.start(n, 24*time.Hour)
		}
		gone("after a restart")
		if err := os.Mkdir(r.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		gone("with an empty one")
		if left, err := os.ReadDir(r.dir); len(left) > 0 || err != nil {
			t.Errorf("it has %v, %v", left, err)
		}

		if err := errors.Join(os.Remove(r.dir), os.Rename(r.dir+".away", r.dir)); err != nil {
			t.Fatal(err)
		}
		r.pass(lookEvery + time.Second)
		if err := errors.Join(r.nodes[0].Refused(), r.nodes[1].Refused()); err != nil {
			t.Error(err)
		}
		r.pass(15 * time.Minute)
		r.expect("with the backups", 2, 0, 0)

		// It is emptied on purpose, and the first backup is taken by hand.
		if err := os.RemoveAll(r.dir); err != nil {
			t.Fatal(err)
		}
		r.pass(25 * time.Hour)
		r.expect("in a new directory", 0, 0, 0)
		if _, _, err := r.keep(t.Context(), r.nodes[0].To, manifestOf("cluster", time.Now())); err != nil {
			t.Fatal(err)
		}
		r.pass(24*time.Hour + 15*time.Minute)
		r.expect("a day after one by hand", 2, 0, 0, 0)
	})
}

// It is the same directory where the operator writes its name in another way.
func TestSchedule_KnowsTheDirectoryByAnyName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.pass(11 * time.Minute)
		r.expect("at first", 1, 0)
		if err := os.Rename(r.dir, r.dir+".away"); err != nil {
			t.Fatal(err)
		}
		r.dir += string(filepath.Separator)
		for n := range r.nodes {
			r.end(n)
			r.start(n, 24*time.Hour)
		}
		r.pass(25 * time.Hour)
		r.expect("without the directory", 0, 0)
	})
}

// A backup that was begun before the file system went is not completed without it.
func TestSchedule_EndsABackupWhereTheOthersAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.pass(24*time.Hour + 30*time.Second)
		r.expect("in the second", 1, 0, 0)
		if err := os.Rename(r.dir, r.dir+".away"); err != nil {
			t.Fatal(err)
		}
		r.pass(15 * time.Minute)
		r.expect("without the directory", 0, 0, 0)
		if status := r.nodes[0].Status(); !strings.Contains(status.Error, errEmptied.Error()) {
			t.Errorf("%+v", status)
		}
	})
}

// A node goes to another place by its flags.
func TestSeen_IsOfOnePlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seen")
	for n, row := range []struct {
		place   string
		backups int
		want    error
	}{{"a", 0, nil}, {"a", 2, nil}, {"a", 0, errEmptied}, {"b", 0, nil}, {"a", 0, errEmptied}, {"b", 1, nil}, {"a", 0, nil}, {"b", 0, errEmptied}} {
		if failed, err := (&seen{file: file}).check(row.place, row.backups); failed != nil || !errors.Is(err, row.want) {
			t.Errorf("%d: %v, %v, want %v", n, failed, err, row.want)
		}
	}
	s := &seen{file: filepath.Join(t.TempDir(), "nowhere", "seen")}
	if failed, err := s.check("a", 1); failed == nil || err != nil {
		t.Errorf("%v, %v", failed, err)
	}
	if _, err := s.check("a", 0); !errors.Is(err, errEmptied) {
		t.Error(err)
	}
}

// A node that becomes the one to take backups looks at once.
func TestSchedule_TakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearseLed(t, 24*time.Hour, -1)
		r.end(0)
		changed := make(chan struct{})
		r.nodes[0].Leads = func() (bool, <-chan struct{}) {
			select {
			case <-changed:
				return true, nil
			default:
				return false, changed
			}
		}
		r.nodes[0].Run(expired(t, time.Second))
		r.expect("before", 0)
		time.AfterFunc(time.Second, func() { close(changed) })
		r.nodes[0].Run(expired(t, 5*time.Second))
		r.expect("after", 0, 0)
	})
}

// expired returns a context that ends after a time.
func expired(t *testing.T, after time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	t.Cleanup(cancel)
	return ctx
}

// A node that stops ends the backup that it takes.
func TestSchedule_StopsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.pass(5 * time.Minute)
		now := time.Now()
		r.end(0)
		if took := time.Since(now); took > 0 {
			t.Errorf("it took %s", took)
		}
		r.expect("after the stop", 0, 0)
		if status := r.nodes[0].Status(); status.Failed != 0 {
			t.Errorf("%+v", status)
		}
	})
}
