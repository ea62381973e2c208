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
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster"
	"switchyard/storage"
)

// logbook is the logs of a cluster of one workspace shard and the directory, on two nodes that both
// have all entries.
type logbook struct {
	t    *testing.T
	dir  string
	kept chan struct{}

	mu      sync.Mutex
	entries [2][]cluster.LogEntry // by shard
	first   [2]uint64             // oldest entry in the log
	owner   [2]int                // node
	keeps   [2]map[int]uint64     // by node and shard: entries behind are kept
	newest  *Manifest
	known   bool
	ahead   time.Duration // of the nodes' clocks

	nodes [2]*LogArchiver
	stop  [2]func()
}

// openLogbook makes the logs, and an archiver for each node. Tests start these with run when the logs
// are as they want them for the first pass, which begins at once.
func openLogbook(t *testing.T, every time.Duration) *logbook {
	t.Helper()
	b := &logbook{t: t, dir: filepath.Join(t.TempDir(), "backups"), kept: make(chan struct{}, 1), first: [2]uint64{1, 1}, known: true,
		keeps: [2]map[int]uint64{{}, {}}}
	for n := range b.nodes {
		b.open(n, every)
	}
	return b
}

// open gives a node an archiver that knows nothing yet.
func (b *logbook) open(n int, every time.Duration) {
	b.nodes[n] = &LogArchiver{To: NewArchive(InDir(b.dir), nil), Every: every, Node: fmt.Sprint("node-", n), Logs: bookOf{b, n}, Kept: b.kept, Now: b.now, Logger: slog.New(slog.DiscardHandler),
		Newest: func() (*Manifest, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.newest, b.known
		}}
}

// now is the time by the clocks of the nodes.
func (b *logbook) now() (now time.Time) {
	b.change(func() { now = time.Now().Add(b.ahead) })
	return now
}

// run starts the archivers of both nodes, until the test ends.
func (b *logbook) run() {
	for n := range b.nodes {
		b.start(n)
	}
	b.t.Cleanup(func() { b.stop[0](); b.stop[1]() })
}

func (b *logbook) start(n int) {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	b.stop[n] = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		b.nodes[n].Run(ctx)
	}()
}

// restart starts an archiver of a node that has stopped, as after a restart of the node.
func (b *logbook) restart(n int, every time.Duration) {
	b.open(n, every)
	b.start(n)
}

func (b *logbook) write(shard, count, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range count {
		b.entries[shard] = append(b.entries[shard], cluster.LogEntry{Index: uint64(len(b.entries[shard]) + 1), Term: 1, AppendedAt: time.Now().Add(b.ahead), Command: true, Data: make([]byte, size)})
	}
}

// change runs fn under the lock.
func (b *logbook) change(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
}

// backUp makes a backup of now the newest one.
func (b *logbook) backUp() *Manifest {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &Manifest{ClusterID: logCluster, Shards: 1, Moment: time.Now(), Ended: time.Now()}
	for shard := range b.entries {
		m.Files = append(m.Files, File{Shard: shard, Index: uint64(len(b.entries[shard]))})
	}
	b.newest = m
	return m
}

// reach returns how long ago the last moment was to which a backup can be restored.
func (b *logbook) reach(m *Manifest) time.Duration {
	b.t.Helper()
	spans, err := NewArchive(InDir(b.dir), nil).Spans(b.t.Context(), []*Manifest{m})
	if err != nil {
		b.t.Fatal(err)
	}
	return time.Since(spans[0].To)
}

func (b *logbook) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bookOf is the logs as one node sees them.
type bookOf struct {
	*logbook
	node int
}

func (b bookOf) ClusterID() string      { return logCluster }
func (b bookOf) Shards() int            { return 1 }
func (b bookOf) Format() storage.Format { return storage.FormatNewest }
func (b bookOf) Owns(shard storage.Shard) (owns bool) {
	b.change(func() { owns = b.owner[shard] == b.node })
	return owns
}

func (b bookOf) Reach(shard storage.Shard, _ time.Time) (first, applied uint64, err error) {
	b.change(func() { first, applied = b.first[shard], uint64(len(b.entries[shard])) })
	return first, applied, nil
}

func (b bookOf) ReadLog(shard storage.Shard, after uint64, fn func(*cluster.LogEntry) (bool, error)) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for after < uint64(len(b.entries[shard])) {
		if after+1 < b.first[shard] {
			return after, cluster.ErrLogTruncated
		}
		after++
		if more, err := fn(&b.entries[shard][after-1]); err != nil || !more {
			return after, err
		}
	}
	return after, nil
}

func (b bookOf) KeepLog(shard storage.Shard, after uint64, period time.Duration) {
	b.change(func() { b.keeps[b.node][int(shard)] = after })
	if period < 10*time.Minute {
		b.t.Errorf("the log is kept for %s", period)
	}
}

func TestLogArchiver_GoesOnWhereAnotherNodeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(0, 3, 100)
		b.write(1, 5, 100)
		if status := b.nodes[0].Status(); status.Known || !math.IsInf(status.Age(time.Now()), 1) {
			t.Errorf("%+v before the first pass", status)
		}
		m := b.backUp()
		b.run()
		b.pass(time.Second)
		b.change(func() { // from the first pass on, with or without new entries
			if b.keeps[0][0] != 3 || b.keeps[0][1] != 5 {
				t.Errorf("the logs are kept behind %v", b.keeps)
			}
		})
		b.pass(time.Minute)
		b.write(1, 5, 100)
		b.pass(time.Minute)
		if late := b.reach(m); late != time.Second {
			t.Errorf("the archive is %s behind", late)
		}
		if status := b.nodes[0].Status(); status.Age(time.Now()) != 1 || len(status.Gaps) != 0 || status.Failures != 0 || status.Segments == 0 {
			t.Errorf("%+v", status)
		}
		if status := b.nodes[1].Status(); status.Age(time.Now()) > 61 || status.Segments != 0 {
			t.Errorf("the other node: %+v", status)
		}
		b.change(func() {
			if b.keeps[0][1] != 10 || b.keeps[1][1] < 5 {
				t.Errorf("the logs are kept behind %v", b.keeps)
			}
			b.owner = [2]int{1, 1}
		})

		// The other node becomes the owner. Its first entry may have the clock of a machine that is behind.
		b.write(1, 5, 100)
		b.pass(2 * time.Minute)
		if status := b.nodes[1].Status(); status.Lost != 0 || status.Segments == 0 || b.reach(m) > time.Minute {
			t.Errorf("%+v, %s behind", status, b.reach(m))
		}
		l, err := b.nodes[0].To.listLogs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, last, err := l.chain(t.Context(), logOf{logCluster, 1}, m.Files[1].Index); last != 15 || err != nil {
			t.Errorf("the segments lead to entry %d, %v", last, err)
		}

		// Restarted, it knows what is archived already.
		b.stop[1]()
		before, _ := b.nodes[1].To.segments(t.Context())
		b.restart(1, time.Minute)
		b.pass(time.Minute)
		if after, _ := b.nodes[1].To.segments(t.Context()); len(after) != len(before) {
			t.Errorf("%d segments after the restart, %d before", len(after), len(before))
		}
		// Marks that can't be read are passed over: the image says where to begin.
		b.stop[1]()
		files, err := b.nodes[1].To.place.List(t.Context(), markDir)
		if err != nil || len(files) != 2 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(b.dir, file.Name), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.restart(1, time.Minute)
		b.pass(time.Minute)
		if status := b.nodes[1].Status(); status.Lost != 0 || len(status.Gaps) != 0 || b.reach(m) > time.Minute {
			t.Errorf("without marks: %+v, %s behind", status, b.reach(m))
		}
	})
}

func TestLogArchiver_TellsOfAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(0, 3, 10)
		b.write(1, 5, 10)
		m := b.backUp()
		b.run()
		b.write(1, 5, 10)
		b.pass(time.Minute + time.Second)
		b.write(1, 20, 10)
		b.change(func() { b.first[1] = 21 })
		reached := time.Now().Add(-time.Second)
		b.pass(2 * time.Minute)
		status := b.nodes[0].Status()
		if status.Lost != 1 || !slices.Equal(status.Gaps, []int{1}) || status.Failures != 0 {
			t.Errorf("%+v", status)
		}
		if late := b.reach(m); late != time.Since(reached) {
			t.Errorf("the backup leads to %s ago, and the log was whole %s ago", late, time.Since(reached))
		}
		if other := b.nodes[1].Status(); !slices.Equal(other.Gaps, []int{1}) {
			t.Errorf("the other node: %+v", other)
		}
		// The next backup ends it.
		m = b.backUp()
		b.write(1, 2, 10)
		b.pass(2 * time.Minute)
		if status := b.nodes[0].Status(); len(status.Gaps) != 0 || status.Lost != 1 || b.reach(m) > time.Minute {
			t.Errorf("%+v, %s behind", status, b.reach(m))
		}
		// Truncated entries are no gap if the image of a backup has them.
		b.write(1, 20, 10)
		m = b.backUp()
		b.change(func() { b.first[1] = uint64(len(b.entries[1])) })
		b.write(1, 1, 10)
		b.pass(2 * time.Minute)
		if status := b.nodes[0].Status(); status.Lost != 1 || len(status.Gaps) != 0 || b.reach(m) > time.Minute {
			t.Errorf("%+v, %s behind", status, b.reach(m))
		}
	})
}

func TestLogArchiver_TriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.change(func() { b.known = false })
		b.write(1, 5, 10)
		b.run()
		b.pass(3 * time.Second)
		if status := b.nodes[0].Status(); status.Known || status.Failures != 0 {
			t.Errorf("%+v while the backups are not known yet", status)
		}
		b.pass(5 * time.Minute)
		if status := b.nodes[0].Status(); status.Failures < 5 || status.Error == "" {
			t.Errorf("%+v while the backups can't be looked at", status)
		}
		b.change(func() { b.known = true })
		m := b.backUp()
		b.pass(2 * time.Minute)
		if err := os.Rename(b.dir, b.dir+".x"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.write(1, 5, 10)
		b.pass(5 * time.Minute)
		if status := b.nodes[0].Status(); status.Failures < 5 || status.Error == "" || status.Age(time.Now()) < 240 {
			t.Errorf("%+v without the directory", status)
		}
		if err := os.Remove(b.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(b.dir+".x", b.dir); err != nil {
			t.Fatal(err)
		}
		b.pass(logRetry)
		if status := b.nodes[0].Status(); status.Failures != 0 || status.Error != "" || status.Failed < 5 || b.reach(m) > logRetry {
			t.Errorf("%+v with the directory", status)
		}
	})
}

// A node that is started while the archive can't be reached keeps its logs, as one that runs.
func TestLogArchiver_KeepsLogsFromItsStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(1, 5, 10)
		m := b.backUp()
		b.run()
		b.pass(time.Minute + time.Second)
		b.stop[0]()
		b.change(func() { b.known, b.keeps[0] = false, map[int]uint64{} })
		b.restart(0, time.Minute)
		b.write(1, 5, 10)
		b.pass(time.Second)
		b.change(func() {
			if after, kept := b.keeps[0][1]; !kept || after > 5 {
				t.Errorf("the logs are kept behind %v", b.keeps[0])
			}
			b.known = true
		})
		b.pass(2 * time.Minute)
		b.change(func() {
			if b.keeps[0][1] != 10 {
				t.Errorf("the logs are kept behind %v", b.keeps[0])
			}
		})
		if status := b.nodes[0].Status(); status.Lost != 0 || status.Failures != 0 || b.reach(m) > time.Minute {
			t.Errorf("%+v, %s behind", status, b.reach(m))
		}
	})
}

// A log that grows fast is archived before its time, in segments of a bounded size.
func TestLogArchiver_DoesNotWaitWhenTheLogGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Hour)
		m := b.backUp()
		b.run()
		b.pass(time.Minute)
		b.write(1, 9, segmentBytes/4)
		b.kept <- struct{}{}
		b.pass(time.Second)
		b.kept <- struct{}{} // for the other node, maybe
		b.pass(time.Second)
		all, err := b.nodes[0].To.segments(t.Context())
		if err != nil || len(all) != 3 {
			t.Errorf("there are %+v, %v", all, err)
		}
		if late := b.reach(m); late > 2*time.Second {
			t.Errorf("the archive is %s behind", late)
		}
	})
}

func TestPrune_RemovesSegmentsThatNoBackupNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := NewArchive(InDir(dir), nil)
	keepSegment(t, a, 0, logEntries(1, 4, 10), noon)
	keepSegment(t, a, 1, logEntries(1, 4, 10), noon)
	keepSegment(t, a, 1, logEntries(5, 9, 10), noon)
	keepSegment(t, a, 1, logEntries(10, 12, 10), noon)
	for _, cluster := range []string{"gone", logCluster} {
		if err := errors.Join(a.putMark(t.Context(), &mark{ClusterID: cluster, Node: "n"}), a.putBegun(t.Context(), cluster, "n")); err != nil {
			t.Fatal(err)
		}
	}
	gone := &segment{cluster: "gone", shard: 1, first: 1, last: 2, from: noon, until: noon, sum: "ab"}
	for _, name := range []string{gone.name(), logDir + partPrefix + "left", logDir + "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(want ...string) {
		t.Helper()
		tk := &taken{Taking: Taking{To: a}}
		if err := tk.pruneLogs(t.Context(), map[logOf]uint64{{logCluster, 0}: 3, {logCluster, 1}: 9}); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, folder := range []string{logDir, markDir} {
			files, err := a.place.List(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if s, ok := parseSegment(f.Name); ok {
					f.Name = fmt.Sprintf("%.4s %d %d-%d", s.cluster, s.shard, s.first, s.last)
				}
				left = append(left, strings.TrimPrefix(f.Name, folder))
			}
		}
		slices.Sort(left)
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("%q are left, not %q", left, want)
		}
	}
	prune("0128 0 1-4", "0128 1 10-12", "gone 1 1-2", ".part-left", "other", "gone-n.json", logCluster+"-n.json", "gone-n.json", logCluster+"-n.json")
	// A day later nothing is on its way any more.
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{gone.name(), logDir + partPrefix + "left", a.markName("gone", "n"), a.markName(logCluster, "n"), a.begunName("gone", "n"), a.begunName(logCluster, "n"), logDir + "other"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	prune("0128 0 1-4", "0128 1 10-12", "other", logCluster+"-n.json", logCluster+"-n.json")
}
